"""What goes wrong, and how often. A fault is counted where it fired, and not where it was drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Literal

LOSS = Literal["", "lost"]


@dataclass(frozen=True, slots=True)
class Chances:
    """Of each trip to Redis or SQL, of each doorbell, of each stop that is told, and in each second of a worker's
    orderly stop; and a Redis or SQL that is away, once in so many seconds."""

    request_lost: float = 0.001
    reply_lost: float = 0.001
    dies_before: float = 0.0006
    dies_after: float = 0.0006
    freezes: float = 0.0005
    slow: float = 0.002
    sql_lost: float = 0.0015
    bell_lost: float = 0.015
    bell_repeated: float = 0.02
    bell_late: float = 0.03
    stop_unheard: float = 0.2
    callback_fails: float = 0.05
    drains: float = 0.02
    redis_away_every_s: float = 45.0
    sql_away_every_s: float = 45.0


LONGEST_AWAY_S = 8.0
LONGEST_FREEZE_S = 40.0
LONGEST_LATE_S = 20.0


@dataclass(eq=False)
class Faults:
    """Draws faults while it is not calm. `fired` are those that happened, by their kind."""

    rng: Random
    chances: Chances
    fired: Counter[str] = field(default_factory=Counter[str])
    is_calm: bool = False
    _before: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    _after: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])

    def __post_init__(self) -> None:
        of = self.chances
        self._before = [(of.dies_before, "dies before"), (of.freezes, "freezes"), (of.slow, "slow")]
        self._after = [(of.dies_after, "dies after")]

    def latency_s(self) -> float:
        """Of one trip."""
        return 0.0002 + self.rng.random() * 0.002

    def before(self, server: str) -> str:
        """What befalls a trip before it arrives: `lost`, `dies before`, `freezes`, `slow`, or nothing."""
        lost = self.chances.request_lost if server == "redis" else self.chances.sql_lost
        return self._drawn([*self._before, (lost, "lost")])

    def after(self, server: str) -> str:
        """What befalls it once it took effect: `lost`, `dies after`, or nothing."""
        lost = self.chances.reply_lost if server == "redis" else self.chances.sql_lost
        return self._drawn([*self._after, (lost, "lost")])

    def bell(self) -> str:
        """What befalls a doorbell: `lost`, `repeated`, `late`, or nothing."""
        of = self.chances
        return self._drawn([(of.bell_lost, "lost"), (of.bell_repeated, "repeated"), (of.bell_late, "late")])

    def happens(self, chance: float) -> bool:
        return not self.is_calm and self.rng.random() < chance

    def _drawn(self, kinds: list[tuple[float, str]]) -> str:
        if self.is_calm:
            return ""
        roll = self.rng.random()
        for chance, kind in kinds:
            if roll < chance:
                return kind
            roll -= chance
        return ""
