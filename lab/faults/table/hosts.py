"""Hosts cut off: their packets are lost in silence, their processes work on, and come back after their leases."""

from __future__ import annotations

import time
from typing import ClassVar

from lab.faults.effects import Line, wait_for
from lab.faults.fault import Fault, Pace
from lab.faults.hosts import BOTH, LOSSY, NARROW, NOTHING, Host, Way, no_netem
from lab.faults.stage import HOSTS, Stage, no_network
from lab.faults.table.kills import Kill, KillCoordinator, KillSerial, KillWrite

REFUSED_S = 60.0
"""Until a host that is back has tried to write: its connections are made anew."""


class CutHost(Kill):
    """The host of the worker at `place` is cut off for longer than a lease. When it is back, fences refuse it.

    with_world   it is cut off from the world, too
    works_on     its worker, which is held, goes on at once, without its servers; else only when it is back
    """

    kind = "hosts"
    with_world: ClassVar[bool] = False
    works_on: ClassVar[bool] = True

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.host: Host | None = None
        self.before = 0
        self.back = 0.0

    @classmethod
    def why_not(cls) -> str:
        return no_network()

    def prepare(self, stage: Stage) -> None:
        super().prepare(stage)
        self.host = stage.host_of(stage.worker(self.pool, self.pid))
        self.before = self.count(self.host)

    def inject(self, stage: Stage) -> None:
        assert self.host is not None
        back = time.monotonic() + self.pace.frozen_s
        self.cut(self.host)
        if self.works_on:
            stage.effects.release()
        stage.effects.wait_seen(self.resumes, self.turn, after=self.began)
        time.sleep(max(0.0, back - time.monotonic()))

    def heal(self, stage: Stage) -> None:
        if self.host is not None:
            self.host.mend()
        self.back = time.monotonic()
        super().heal(stage)

    def fired(self, stage: Stage) -> int:
        """Return how often a fence refused the worker, if the kernel has counted that it was cut off."""
        if self.host is None or self.count(self.host) <= self.before:
            return 0
        return len(wait_for(lambda: self.refusals(stage), "a fence refuses the host that is back", REFUSED_S))

    def cut(self, host: Host) -> None:
        host.cut(world=self.with_world)

    def count(self, host: Host) -> int:
        """Return what the kernel has counted of this fault."""
        return host.unplugged

    def refusals(self, stage: Stage) -> list[Line]:
        """By the worker's own word, since it is back."""
        told = [line for line in stage.effects.lines() if line["place"] == "refused"]
        return [line for line in told if line["pid"] == self.pid and line["at"] > self.back]


class HostVanishes(CutHost, KillWrite):
    name = "host-vanishes"
    title = "a host vanishes from the network for longer than a lease, in a write that the server has, and comes back"
    with_world, works_on = True, False


class HostCutModel(CutHost, KillCoordinator):
    name = "host-cut-model"
    title = "a host cut off from Redis and Postgres while the model answers: it gets the answer, and works on"


class HostCutWrite(CutHost, KillSerial):
    name = "host-cut-write"
    title = "a host cut off from Redis and Postgres before its intent; it comes back, and may not write"
    works_on = False


class HostMute(CutHost, KillWrite):
    name = "host-mute"
    title = "half open: what a host sends is lost, in a write that the server has"
    way: ClassVar[Way] = "from the host"

    def cut(self, host: Host) -> None:
        host.shape([self.way], NOTHING)

    def count(self, host: Host) -> int:
        return host.dropped


class HostDeaf(HostMute):
    name = "host-deaf"
    title = "half open: what a host is sent is lost, and what it asked for is done"
    way = "to the host"

    def fired(self, stage: Stage) -> int:
        """Return the kernel's count. A fence may have refused nothing, if the worker's last report arrived in time."""
        return 0 if self.host is None else self.count(self.host) - self.before


class BadWire(Fault):
    """Both hosts' packets, each way, for seconds; the kernel counts those that were lost."""

    kind = "hosts"
    how: ClassVar[tuple[str, ...]]

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.before: int | None = None

    @classmethod
    def why_not(cls) -> str:
        return no_network()

    def prepare(self, stage: Stage) -> None:
        self.before = _dropped(stage)

    def inject(self, stage: Stage) -> None:
        for name in HOSTS:
            stage.network.hosts[name].shape(BOTH, self.how)
        time.sleep(self.pace.outage_s)

    def heal(self, stage: Stage) -> None:
        for name in HOSTS:
            stage.network.hosts[name].mend()

    def fired(self, stage: Stage) -> int:
        return 0 if self.before is None else _dropped(stage) - self.before


class HostNarrow(BadWire):
    name = "host-narrow"
    title = "hosts behind 256 kbit/s for seconds: packets late by up to 100 ms, or lost"
    how = NARROW


class HostLoss(BadWire):
    name = "host-loss"
    title = "hosts whose packets are 50 ms late, and one in twenty lost, for seconds"
    how = LOSSY

    @classmethod
    def why_not(cls) -> str:
        return no_network() or no_netem()


def _dropped(stage: Stage) -> int:
    return sum(stage.network.hosts[name].dropped for name in HOSTS)
