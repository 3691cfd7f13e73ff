"""TurnFacts: everything that Redis and SQL know about one turn, for `brainq show` and for programs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.event import TurnEvent
from brainq.contracts.fleet import FleetTrouble
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import full_call_id
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import Approval, Receipt, StandingHold
from brainq.contracts.rows import CallRow, InputRow, JudgementRow, MemoryRow, ObservationRow, StepRow, TurnRow
from brainq.contracts.status import TraceStatus
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.engine.tools.results import outcome_text

_STATUS_OF_OUTCOME = {
    "success": TraceStatus.COMPLETED,
    "failure": TraceStatus.FAILED,
    "timeout": TraceStatus.TIMED_OUT,
    "denied": TraceStatus.DENIED,
}


@dataclass(frozen=True)
class CallFacts:
    """Everything that Redis and SQL know about one call.

    intents   the times it was started, in order; empty for a read, and for a write that never started
    """

    call: TurnCall
    intents: list[CallRow]

    @property
    def arguments(self) -> dict[str, Any] | str | None:
        """The arguments from the model, or those of the newest intent. None if neither is kept."""
        given = self.call.arguments
        if given is None and self.intents and self.intents[-1].args_json is not None:
            return json.loads(self.intents[-1].args_json)
        return given

    def as_json(self) -> dict[str, Any]:
        intents = [asdict(intent) for intent in self.intents]
        return self.call.model_dump(mode="json") | {"arguments": self.arguments, "intents": intents}


def call_of_intents(intents: Sequence[CallRow]) -> TurnCall:
    """Return a call by its intents alone, for a trace that was lost with Redis. Pure.

    intents: the intents of one call, at least one.
    """
    newest = intents[-1]
    status = _STATUS_OF_OUTCOME.get(newest.outcome_kind or "", TraceStatus.UNKNOWN)
    if newest.state == "void":
        status = TraceStatus.CANCELLED
    text, is_error = (None, False) if newest.outcome is None else outcome_text(newest.outcome)
    return TurnCall(
        id=full_call_id(newest.turn_id, newest.call_id),
        session_id=newest.session_id,
        turn_id=newest.turn_id,
        call_id=newest.call_id,
        tool=newest.tool,
        effect=newest.effect,
        status=status,
        step=int(newest.call_id[1:].partition("-")[0]),  # c2-0 is of step 2
        wave=0,
        attempt=newest.attempt,
        result=text,
        is_error=is_error,
        is_kept=newest.args_json is not None,
        started_at_ms=round(newest.started_at.timestamp() * 1000),
        detail="the call never started"
        if newest.state == "void"
        else "Redis lost the trace of this call; these are the data in SQL",
    )


@dataclass(frozen=True)
class TurnFacts:
    """Everything that Redis and SQL know about one turn.

    `snapshot` is None if Redis does not know the turn or is away; `next` explains what happens next, and why.

    spends                    from SQL, which has them from the finalizer's `log` step on; those after the result last
    memories, observations    those first seen in this turn
    inputs                    what was sent into it, and what became of each
    decision                  the decision record, once it is written
    troubles                  what is wrong with the fleet that is to go on with it; none for a turn that has ended
    retries                   of the model, as far as Redis still has the turn's events
    messages, calls           as `TurnHandle.transcript` and `calls` give them; `no_messages` says why there are none
    """

    row: TurnRow
    request: TurnRequest | None
    snapshot: TurnSnapshot | None
    result: TurnResult | None
    steps: list[StepRow]
    intents: list[CallRow]
    calls: tuple[TurnCall, ...]
    spends: list[Spend]
    judgements: list[JudgementRow]
    memories: list[MemoryRow]
    observations: list[ObservationRow]
    approvals: list[Approval]
    holds: list[StandingHold]
    inputs: list[tuple[InputRow, Receipt]]
    messages: tuple[Message, ...]
    no_messages: str
    retries: list[TurnEvent]
    next: str
    troubles: tuple[FleetTrouble, ...] = ()
    decision: RuntimeDecisionRecord | None = None

    @property
    def state(self) -> str:
        return self.snapshot.state.value if self.snapshot else self.row.state

    @property
    def used(self) -> dict[str, Any]:
        """The tokens and dollars of all model calls, including those after the result. Dollars are None if a call has
        no price."""
        costs = [spend.cost_usd for spend in self.spends]
        known = [usd for usd in costs if usd is not None]
        return {
            "tokens": sum(spend.usage.total for spend in self.spends),
            "cost_usd": sum(known) if len(known) == len(costs) else None,
        }

    def as_json(self) -> dict[str, Any]:
        return {
            "turn_id": self.row.turn_id,
            "session_id": self.row.session_id,
            "request_key": self.row.request_key,
            "state": self.state,
            "next": self.next,
            "troubles": [trouble.model_dump(mode="json") for trouble in self.troubles],
            "accepted_at": self.row.accepted_at.isoformat(),
            "ended_at": self.row.ended_at.isoformat() if self.row.ended_at else None,
            "reject_reason": self.row.reject_reason,
            "redis": self.snapshot.model_dump(mode="json") if self.snapshot else None,
            "result": self.result.model_dump(mode="json") if self.result else None,
            "finalizer_steps": [asdict(step) for step in self.steps],
            "intents": [asdict(intent) for intent in self.intents],
            "calls": [call.model_dump(mode="json") for call in self.calls],
            "used": self.used,
            "spends": [spend.model_dump(mode="json") for spend in self.spends],
            "decision": self.decision.model_dump(mode="json") if self.decision else None,
            "judgements": [asdict(judgement) for judgement in self.judgements],
            "memories": [asdict(memory) for memory in self.memories],
            "observations": [asdict(observation) for observation in self.observations],
            "approvals": [approval.model_dump(mode="json") for approval in self.approvals],
            "holds": [hold.model_dump(mode="json") for hold in self.holds],
            "inputs": [
                {"text": row.text, "readiness": row.readiness, "merged": row.merged}
                | {"accepted_at": row.accepted_at.isoformat()}
                | receipt.model_dump(mode="json")
                for row, receipt in self.inputs
            ],
            "messages": [message.model_dump(mode="json") for message in self.messages],
            "retries": [event.data for event in self.retries],
            "no_messages": self.no_messages or None,
        }
