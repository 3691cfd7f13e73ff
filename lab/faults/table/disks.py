"""Disks full for seconds: of SQLite, of Redis, of the workers' data (ready files, logs), and all of them; and each of
these while Redis comes and goes, so that workers have to say meanwhile that they can work again."""

from __future__ import annotations

import time
from typing import ClassVar

from lab.faults.disks import no_small_disk
from lab.faults.effects import wait_for
from lab.faults.fault import Pace
from lab.faults.shortage import Shortage
from lab.faults.stage import Stage

REDIS_FLAPS_S = 2.0


class DiskFull(Shortage):
    """`disks`: which, by their names in `Servers.disks`. `flaps`: whether workers' connections to Redis are cut every
    other two seconds meanwhile."""

    kind = "small disk"
    disks: ClassVar[tuple[str, ...]]
    flaps: ClassVar[bool] = False

    def __init__(self, pace: Pace) -> None:
        super().__init__(pace)
        self.before: dict[str, int] = {}
        self.refused_submits = 0
        self.is_away = False
        self.absences = 0

    @classmethod
    def why_not(cls) -> str:
        return no_small_disk()

    def prepare(self, stage: Stage) -> None:
        self.before = {name: stage.servers.disks[name].refused for name in self.disks}

    def inject(self, stage: Stage) -> None:
        """Fill the disks. A full disk of Redis or SQLite lasts until a submit was refused because of it."""
        before = stage.producer.submitted.refused
        super().inject(stage)
        if set(self.disks) - {"workers"}:
            wait_for(lambda: self._refused(stage, before), "a submit is refused", 60.0)
            self.refused_submits = stage.producer.submitted.refused - before

    def _refused(self, stage: Stage, before: int) -> bool:
        self.shorten(stage)
        return stage.producer.submitted.refused > before

    def shorten(self, stage: Stage) -> None:
        for name in self.disks:  # again and again: SQLite gives room back when it checkpoints
            stage.servers.disks[name].fill()
        away = self.flaps and int((time.monotonic() - self.began) / REDIS_FLAPS_S) % 2 == 1
        if away and not self.is_away:
            stage.proxy.go_away()
            self.absences += 1
        elif self.is_away and not away:
            stage.proxy.come_back()
        self.is_away = away

    def give_back(self, stage: Stage) -> None:
        """Restore Redis before there is room again, so that its first writes are refused."""
        if self.is_away:
            stage.proxy.come_back()
            time.sleep(REDIS_FLAPS_S)
        for name in self.disks:
            stage.servers.disks[name].free()

    def fired(self, stage: Stage) -> int:
        """How often a disk had no room for a byte, where each had none, and a submit was refused if that needs it."""
        refused = [stage.servers.disks[name].refused - before for name, before in self.before.items()]
        is_seen = self.refused_submits > 0 or self.disks == ("workers",)
        came_and_went = self.absences > 0 or not self.flaps
        return min(refused, default=0) if is_seen and came_and_went else 0


class SqlFull(DiskFull):
    name = "sql-full"
    title = "the disk of the SQLite file full for seconds"
    disks = ("sql",)


class SqlFullRedisAway(SqlFull):
    name = "sql-full-redis-away"
    title = "the disk of the SQLite file full for seconds, while Redis comes and goes"
    flaps = True


class ReadyFull(DiskFull):
    name = "ready-full"
    title = "the disk of ready files and logs full for seconds"
    disks = ("workers",)


class ReadyFullRedisAway(ReadyFull):
    name = "ready-full-redis-away"
    title = "the disk of ready files and logs full for seconds, while Redis comes and goes"
    flaps = True


class RedisFull(DiskFull):
    name = "redis-full"
    title = "the disk of Redis' append-only file full for seconds"
    disks = ("redis",)


class RedisFullRedisAway(RedisFull):
    name = "redis-full-redis-away"
    title = "the disk of Redis' append-only file full for seconds, while Redis comes and goes"
    flaps = True


class DataFull(DiskFull):
    name = "data-full"
    title = "the data directory full for seconds: Redis' file, SQLite, ready files, logs"
    disks = ("sql", "workers", "redis")


class DataFullRedisAway(DataFull):
    name = "data-full-redis-away"
    title = "the data directory full for seconds, while Redis comes and goes"
    flaps = True
