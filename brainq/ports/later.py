"""Threads that are left to what leads to results."""

from __future__ import annotations

from typing import Protocol


class Later(Protocol):
    """Which visits of the finalizer are at steps behind the result. Fitted by `broker.later.LaterThreads`.

    enter       a visit of the turn is at such a step
    try_enter   the same, unless so many are that results would wait
    leave       the visit is over, whatever it was at
    """

    def enter(self, turn_id: str) -> None: ...
    def try_enter(self, turn_id: str) -> bool: ...
    def leave(self, turn_id: str) -> None: ...
