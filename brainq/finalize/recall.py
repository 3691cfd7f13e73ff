"""Recall: an ended turn from wherever it still is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.message import Message
from brainq.contracts.recorded import RecordedTurn
from brainq.contracts.trace import ToolTraceEntry
from brainq.contracts.turn import NOT_KEPT, TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.rebuild import rebuilt_turn
from brainq.finalize.recorded import recorded_turn


class Live(Protocol):
    """Redis; see `finalize.ports.Chain`."""

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None: ...
    def details(self, session_id: str, turn_id: str) -> TurnDetails: ...


class KeptTurns(Protocol):
    """The turns in SQL."""

    def request(self, turn_id: str) -> TurnRequest | None: ...
    def result(self, turn_id: str) -> TurnResult | None: ...
    def number(self, turn_id: str) -> int: ...


class KeptTranscripts(Protocol):
    def of(self, turn_id: str) -> tuple[Message, ...]: ...


class KeptTraces(Protocol):
    def of(self, turn_id: str) -> Sequence[ToolTraceEntry]: ...


class KeptDecisions(Protocol):
    def get(self, turn_id: str) -> RuntimeDecisionRecord | None: ...


class WhatCameBefore(Protocol):
    """What the answer was given on, and the turn itself does not hold."""

    def system_prompt(self, turn: EndedTurn) -> str: ...
    def history(self, turn: EndedTurn) -> tuple[Message, ...]: ...


class Recall:
    """Reads ended turns from Redis while they are there, then from SQL. Fits `finalize.judges.ports.Conversations`.

    The conversation is the other way about: SQL has it whole once the turn is logged, unless it is redacted, while a
    long session's history in Redis may have lost its beginning.
    """

    def __init__(
        self,
        live: Live,
        turns: KeptTurns,
        transcripts: KeptTranscripts,
        traces: KeptTraces,
        decisions: KeptDecisions,
        before: WhatCameBefore | None = None,
    ) -> None:
        self._live = live
        self._turns = turns
        self._transcripts = transcripts
        self._traces = traces
        self._decisions = decisions
        self._before = before

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        """The turn; None while it has no ending that Redis or SQL knows."""
        return self._live.ended(session_id, turn_id) or self._rebuilt(turn_id)

    def messages(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """The turn's own messages; empty when they are gone, or SQL keeps them redacted."""
        return self._transcripts.of(turn_id) or self._live.details(session_id, turn_id).messages

    def result(self, turn_id: str) -> TurnResult | None:
        """The result, once SQL has it."""
        return self._turns.result(turn_id)

    def is_redacted(self, turn_id: str) -> bool:
        """Whether SQL has the ended turn without its content (`redact_logs`)."""
        request = self._turns.request(turn_id)
        return request is not None and request.user_message == NOT_KEPT

    def is_gone(self, session_id: str, turn_id: str) -> bool:
        """Whether its content is nowhere any more: Redis has let the turn go, and SQL keeps none of it."""
        return self.is_redacted(turn_id) and self._live.ended(session_id, turn_id) is None

    def recorded(self, session_id: str, turn_id: str, step_key: str) -> RecordedTurn | None:
        """The turn with its conversation; None when either is gone."""
        turn, messages = self.ended(session_id, turn_id), self.messages(session_id, turn_id)
        if turn is None or not messages:
            return None
        recorded = recorded_turn(turn, messages, turn.context_pack_json, step_key)
        if self._before is None:
            return recorded
        said = {"system_prompt": self._before.system_prompt(turn), "history": self._before.history(turn)}
        return recorded.model_copy(update=said)

    def _rebuilt(self, turn_id: str) -> EndedTurn | None:
        request, result = self._turns.request(turn_id), self._turns.result(turn_id)
        if request is None or result is None:
            return None
        return rebuilt_turn(
            request,
            result,
            turn_number=self._turns.number(turn_id),
            trace=self._traces.of(turn_id),
            decision=self._decisions.get(turn_id),
        )
