"""The faults of a run and their probabilities. A fault is counted when it takes effect, not when it is drawn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random
from typing import Literal

LOSS = Literal["", "lost"]


@dataclass(frozen=True, slots=True)
class Chances:
    """The probability of each fault.

    Most are per trip to Redis or SQL. `bell_*` are per doorbell, `stop_unheard` per published stop, `callback_fails`
    per callback, and `drains` per second of a worker. `*_away_every_s` is the average time between two outages, in
    seconds.
    """

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
    """A source of faults. It draws none while `is_calm`. `fired` counts the faults that took effect, by kind."""

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
        """Return the latency of one trip in seconds."""
        return 0.0002 + self.rng.random() * 0.002

    def before(self, server: str) -> str:
        """Return the fault of a trip before it arrives: `lost`, `dies before`, `freezes`, `slow`, or ""."""
        lost = self.chances.request_lost if server == "redis" else self.chances.sql_lost
        return self._drawn([*self._before, (lost, "lost")])

    def after(self, server: str) -> str:
        """Return the fault of a trip that has taken effect: `lost`, `dies after`, or ""."""
        lost = self.chances.reply_lost if server == "redis" else self.chances.sql_lost
        return self._drawn([*self._after, (lost, "lost")])

    def bell(self) -> str:
        """Return the fault of a doorbell: `lost`, `repeated`, `late`, or ""."""
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
