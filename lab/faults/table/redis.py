"""Redis itself: restarted, killed, wiped, and failed over."""

from __future__ import annotations

from brainq.app.devserver.ports import ping
from lab.faults.fault import Fault, Pace
from lab.faults.stage import Stage


class RedisFault(Fault):
    """A fault of Redis. Its run id before and after shows whether it restarted."""

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.before = ""

    def prepare(self, stage: Stage) -> None:
        self.before = _run_of(stage)

    def fired(self, stage: Stage) -> int:
        return int(self.before not in ("", _run_of(stage)))


def _run_of(stage: Stage) -> str:
    return "".join(stage.redis.command("INFO", "server")).split("run_id:")[1].split()[0]


class RedisRestart(RedisFault):
    name = "redis-restart"
    title = "Redis stopped and started with its file"

    def inject(self, stage: Stage) -> None:
        stage.redis.restart()


class RedisKill(RedisFault):
    name = "redis-kill"
    title = "SIGKILL: Redis, append-only file synced each second"

    def inject(self, stage: Stage) -> None:
        stage.redis.crash()


class RedisWipe(Fault):
    name = "redis-wipe"
    title = "Redis wiped, and built again from SQL"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.keys_lost = 0

    def inject(self, stage: Stage) -> None:
        before = int(stage.redis.command("DBSIZE")[0])
        stage.redis.flushall()
        self.keys_lost = max(0, before - int(stage.redis.command("DBSIZE")[0]))

    def fired(self, stage: Stage) -> int:
        return int(self.keys_lost > 0)


class RedisSwitch(Fault):
    name = "redis-failover-planned"
    title = "Redis failed over by Sentinel, planned: the old primary takes writes for seconds"
    kind = "sentinel"

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.old = 0

    def prepare(self, stage: Stage) -> None:
        assert stage.servers.sentinels is not None
        # Sentinel would promote the primary of the last time, with what it had then, before that follows the new one.
        stage.servers.sentinels.until_followed()

    def inject(self, stage: Stage) -> None:
        assert stage.servers.sentinels is not None
        self.old = stage.servers.sentinels.switch()

    def fired(self, stage: Stage) -> int:
        assert stage.servers.sentinels is not None
        return int(self.old not in (0, stage.servers.sentinels.primary_port))


class RedisFailover(RedisSwitch):
    name = "redis-failover"
    title = "SIGKILL: Redis' primary; Sentinel promotes the replica"
    own_stage = True

    def inject(self, stage: Stage) -> None:
        assert stage.servers.sentinels is not None
        old = stage.servers.sentinels.primary_port
        stage.servers.sentinels.fail_over()
        self.old = 0 if ping(("127.0.0.1", old)) else old
