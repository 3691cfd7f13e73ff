"""The index of turns that the sweeper looks at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from brainq.contracts.sweep import Due, Look, TurnKey


class Index(Protocol):
    """When each turn is looked at, and what a look finds. Fitted by `state.index.RedisIndex`.

    look         and say when each is looked at next; what cannot be looked at is due again when its hold is over
    drop         a turn that Redis does not know is looked at no more
    standing     of each turn: `unknown` to Redis, `unlisted` (nobody would ever look at it), or `known`
    epoch        another one when Redis may have lost data
    """

    def due(self, most: int, hold_s: float) -> Due: ...
    def look(self, turns: Sequence[TurnKey]) -> Sequence[Look | Exception]: ...
    def drop(self, turn: TurnKey) -> None: ...
    def standing(self, turns: Sequence[TurnKey]) -> Sequence[str]: ...
    def list_again(self, turns: Iterable[TurnKey]) -> None: ...
    def take_comparing(self, for_s: float) -> bool: ...
    def epoch(self) -> str: ...
