"""Recall: an ended turn from wherever it still is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.message import Message
from brainq.contracts.recorded import RecordedTurn
from brainq.contracts.trace import ToolTraceEntry
from brainq.contracts.turn import NOT_KEPT, TurnResult
from brainq.contracts.view import EndedTurn
from brainq.finalize.rebuild import rebuilt_turn
from brainq.finalize.recorded import recorded_turn
from brainq.ports.before import Before
from brainq.ports.finals import Finals
from brainq.ports.turn_rows import TurnRows


@dataclass(eq=False)
class Recall:
    """Reads ended turns from Redis while they are there, then from SQL.

    The conversation is the other way about: SQL has it whole once the turn is logged, unless it is redacted, while a
    long session's history in Redis may have lost its beginning.
    """

    live: Finals
    turns: TurnRows
    transcript: Callable[[str], tuple[Message, ...]]
    trace: Callable[[str], Sequence[ToolTraceEntry]]
    decision: Callable[[str], RuntimeDecisionRecord | None]
    before: Before | None = None

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """The turn; None while it has no ending that Redis or SQL knows."""
        return self.live.ended(session_id, turn_id) or self._rebuilt(turn_id)

    def messages(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """The turn's own messages; empty when they are gone, or SQL keeps them redacted."""
        return self.transcript(turn_id) or self.live.details(session_id, turn_id).messages

    def result(self, turn_id: str) -> TurnResult | None:
        """The result, once SQL has it."""
        return self.turns.result(turn_id)

    def is_redacted(self, turn_id: str) -> bool:
        """Whether SQL has the ended turn without its content (`redact_logs`)."""
        request = self.turns.request(turn_id)
        return request is not None and request.user_message == NOT_KEPT

    def is_gone(self, session_id: str, turn_id: str) -> bool:
        """Whether its content is nowhere any more: Redis has let the turn go, and SQL keeps none of it."""
        return self.is_redacted(turn_id) and self.live.ended(session_id, turn_id) is None

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        """The turn with its conversation; None when either is gone."""
        turn, messages = self.ended(session_id, turn_id), self.messages(session_id, turn_id)
        if turn is None or not messages:
            return None
        recorded = recorded_turn(turn, messages, turn.context_pack_json, step_key)
        if self.before is None:
            return recorded
        said = {"system_prompt": self.before.system_prompt(turn), "history": self.before.history(turn)}
        return recorded.model_copy(update=said)

    def _rebuilt(self, turn_id: str) -> EndedTurn | None:
        request, result = self.turns.request(turn_id), self.turns.result(turn_id)
        if request is None or result is None:
            return None
        return rebuilt_turn(
            request,
            result,
            turn_number=self.turns.number(turn_id),
            trace=self.trace(turn_id),
            decision=self.decision(turn_id),
        )
