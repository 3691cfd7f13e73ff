"""Intents of non-read calls in SQL, and how they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Unpack

from brainq.contracts.effect import Effect
from brainq.contracts.intent import Intent
from brainq.contracts.outcome import ToolOutcome
from brainq.contracts.rows import CallRow, VoidVerdict


class CallRows(Protocol):
    """A row before a call starts, its outcome when it ended. Fitted by `store.repositories.calls.Calls`.

    start_unless_braked   `start`, but False also while SQL says that a brake stands on the turn
    void_unstarted        an intent whose attempt never started, and now never will, is void; False: it is none any more
    void                  succeeds only for an attempt that never started, and now never will
    """

    def start(self, **intent: Unpack[Intent]) -> bool: ...
    def start_unless_braked(self, **intent: Unpack[Intent]) -> bool: ...
    def void(
        self,
        *,
        turn_id: str,
        call_id: str,
        attempt: int,
        session_id: str,
        tool: str,
        effect: Effect,
    ) -> VoidVerdict: ...
    def void_unstarted(self, turn_id: str, call_id: str, attempt: int) -> bool: ...
    def record_outcome(
        self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool
    ) -> bool: ...
    def of(self, turn_id: str) -> Sequence[CallRow]: ...
    def has_intents(self, turn_id: str) -> bool: ...
