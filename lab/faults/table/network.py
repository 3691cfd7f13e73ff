"""The network between workers and Redis, broken by a TCP proxy that counts what it broke."""

from __future__ import annotations

import time

from lab.faults.effects import wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.stage import Stage

DELAY_S = 0.1
RESET_EVERY_S = 0.3
SOON_S = 1.0
WORK = {
    "coordinator": ("model",),
    "parallel": ("read 1", "read 2"),
    "serial": ("before order", "before ship"),
    "finalizer": ("usage",),
}
"""Where a worker of each pool tells the effect server that it works."""


class NetFault(Fault):
    """A fault of the network. The proxy's counters before and after show whether it fired."""

    counters: tuple[str, ...]

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.before: int | None = None

    def prepare(self, stage: Stage) -> None:
        self.before = self._count(stage)

    def fired(self, stage: Stage) -> int:
        return 0 if self.before is None else self._count(stage) - self.before

    def _count(self, stage: Stage) -> int:
        return sum(int(getattr(stage.proxy, counter)) for counter in self.counters)


class NetReset(NetFault):
    name = "net-reset"
    title = "all connections to Redis reset, again and again"
    counters = ("resets",)

    def inject(self, stage: Stage) -> None:
        for _ in range(self.pace.pieces):
            stage.proxy.reset()
            time.sleep(RESET_EVERY_S)


class NetCut(NetFault):
    name = "net-cut"
    title = "connections to Redis cut, and refused for seconds"
    counters = ("resets", "refused")

    def inject(self, stage: Stage) -> None:
        stage.proxy.go_away()
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        stage.proxy.come_back()


class RedisAway(NetCut):
    """A Redis that workers cannot reach. Producers do not use the proxy, so turns are queued meanwhile."""

    name = "redis-away"
    title = "Redis away from all workers for 75 s; recovery: until each pool takes its first work"
    completes = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.back = 0.0

    def inject(self, stage: Stage) -> None:
        stage.proxy.go_away()
        time.sleep(self.pace.away_s)

    def heal(self, stage: Stage) -> None:
        super().heal(stage)
        self.back = time.monotonic()

    def recovery_s(self, stage: Stage) -> list[float]:
        """Return the seconds from Redis' return to the first work of each pool.

        Raises AssertionError if no pool works within one second.
        """
        took = [wait_for(lambda places=places: self._first(stage, places), "a pool works") for places in WORK.values()]
        assert min(took) <= SOON_S, f"the first work was taken {min(took):.1f} s after Redis was back"
        return took

    def _first(self, stage: Stage, places: tuple[str, ...]) -> float:
        came = [line["at"] for line in stage.effects.lines() if line["at"] > self.back and line["place"] in places]
        return min(came, default=self.back) - self.back


class NetSilent(NetFault):
    name = "net-silent"
    title = "connections to Redis silent for seconds, and half open for good"
    counters = ("silenced",)

    def inject(self, stage: Stage) -> None:
        stage.proxy.go_silent()
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        stage.proxy.heal()


class NetDelay(NetFault):
    name = "net-delay"
    title = "Redis 100 ms away, each way, for seconds"
    counters = ("delayed",)

    def inject(self, stage: Stage) -> None:
        stage.proxy.delay(DELAY_S)
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        stage.proxy.delay(0.0)


class NetLostReplies(NetFault):
    name = "net-lost-replies"
    title = "replies of Redis lost: what was asked for was done"
    counters = ("swallowed",)

    def inject(self, stage: Stage) -> None:
        before = stage.proxy.swallowed
        stage.proxy.swallow_replies(self.pace.pieces)
        wait_for(lambda: stage.proxy.swallowed - before >= self.pace.pieces, "replies are lost", 30.0)
