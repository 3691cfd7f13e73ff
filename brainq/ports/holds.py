"""Holds and readiness flags in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from brainq.contracts.hold import HoldSpec, StandingHold
from brainq.contracts.kept import Brake


class Holds(Protocol):
    """What keeps calls that change something from starting. Fitted by `state.holds.RedisHolds`.

    place_all   in place of a word what kept that one from being placed
    """

    def place(
        self, session_id: str, turn_id: str, hold: HoldSpec
    ) -> Literal["HELD", "ALREADY", "ENDED", "GONE"]: ...
    def place_all(self, brakes: Sequence[Brake]) -> Sequence[str | Exception]: ...
    def release(
        self, session_id: str, turn_id: str, hold_id: str
    ) -> Literal["RELEASED", "ABSENT", "GONE"]: ...
    def of(self, session_id: str, turn_id: str) -> Sequence[StandingHold]: ...
    def is_ready(self, session_id: str, turn_id: str) -> bool: ...
    def add_flag(self, session_id: str, flag: HoldSpec) -> Literal["ADDED", "ALREADY", "FULL"]: ...
    def release_flag(
        self, session_id: str, flag_id: str
    ) -> tuple[Literal["READY", "TAKEN", "GONE"], str]: ...
