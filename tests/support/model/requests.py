"""Requests as producers send them, drawn."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from brainq.contracts.turn import LimitsOverride, OnBusy, TurnKind, TurnRequest

MODES: tuple[OnBusy, ...] = ("enqueue", "interrupt", "replace", "reject")
MODE_WEIGHTS = (3, 1, 1, 1)
KINDS: tuple[TurnKind, ...] = ("chat", "review", "compact")
KIND_WEIGHTS = (8, 2, 1)


def draw_request(rng: Random, number: int, sessions: Sequence[str], timeout_s: float) -> TurnRequest:
    """Return the schedule's request of this number, mostly for another session than the one before."""
    return TurnRequest(
        turn_id=f"t{number:02d}",
        session_id=sessions[(number + (rng.random() < 0.2)) % len(sessions)],
        user_message="do",
        limits=LimitsOverride(timeout_s=timeout_s, max_steps=rng.randint(1, 2), max_tool_calls=rng.randint(1, 5)),
        on_busy=rng.choices(MODES, MODE_WEIGHTS)[0],
        kind=rng.choices(KINDS, KIND_WEIGHTS)[0],
    )
