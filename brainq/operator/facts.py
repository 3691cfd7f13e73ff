"""What Redis and SQL know of one turn, gathered."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from brainq.client.checks import MAX_LISTED
from brainq.client.client import Client
from brainq.client.handle import TurnHandle
from brainq.client.history import History
from brainq.client.internals import wiring_of
from brainq.client.progress import explain_next
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.people import Approval, Receipt, StandingHold
from brainq.contracts.rows import CallRow, InputRow, JudgementRow, MemoryRow, ObservationRow, StepRow, TurnRow
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.errors import ContentNotKept, ResultTimeout
from brainq.settings.deployment import Settings
from brainq.store.store import Store


@dataclass(frozen=True)
class TurnFacts:
    """`snapshot` is None when Redis does not know the turn or is away; `next` says what happens next, and why.

    spends                    from SQL, which has them from the finalizer's `log` step on; those after the result last
    memories, observations    those first seen in this turn
    inputs                    what was sent into it, and what became of each
    decision                  the decision record, once it is written
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
    decision: RuntimeDecisionRecord | None = None

    @property
    def state(self) -> str:
        return self.snapshot.state.value if self.snapshot else self.row.state

    @property
    def used(self) -> dict[str, Any]:
        """Tokens and dollars of all model calls so far, after the result, too; None where one has no price."""
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


def collect_facts(
    row: TurnRow, settings: Settings, store: Store, client: Client | None, history: History, why_away: str
) -> TurnFacts:
    """Of `row`'s turn; from SQL only where there is no client, and `why_away` says why."""
    turn_id = row.turn_id
    handle = None if client is None or row.state == "rejected" else client.handle(turn_id)
    snapshot = None if handle is None else handle.snapshot()
    result = _result(handle) or store.turns.result(turn_id)
    messages, no_messages = _messages(row, history)
    return TurnFacts(
        row=row,
        request=store.turns.request(turn_id),
        snapshot=snapshot,
        result=result,
        steps=store.steps.of_turn(turn_id),
        intents=store.calls.of_turn(turn_id),
        calls=history.calls(row.session_id, turn_id, MAX_LISTED, None),
        spends=store.spends.of_turn(turn_id) or list(result.spends if result else ()),
        judgements=store.judgements.of_turn(turn_id),
        memories=store.memories.of_turn(turn_id),
        observations=store.observations.of_turn(turn_id),
        approvals=store.approvals.of_turn(turn_id) if handle is None else list(handle.approvals()),
        holds=_holds(handle, snapshot),
        inputs=[
            (sent, sent.receipt if handle is None else handle.receipt(sent.client_message_id))
            for sent in store.inputs.of_turn(turn_id)
        ],
        messages=messages,
        no_messages=no_messages,
        retries=_retries(handle),
        next=_next_sentence(row, snapshot, settings, client, why_away),
        decision=store.decisions.get(turn_id) if handle is None else handle.decision(),
    )


def _result(handle: TurnHandle | None) -> TurnResult | None:
    if handle is None:
        return None
    try:
        return handle.result(timeout_s=0)
    except ResultTimeout:
        return None


def _messages(row: TurnRow, history: History) -> tuple[tuple[Message, ...], str]:
    """The turn's messages; and why there are none."""
    try:
        return history.transcript(row.session_id, row.turn_id, MAX_LISTED, 0), ""
    except ContentNotKept as refused:
        return (), str(refused)


def _retries(handle: TurnHandle | None) -> list[TurnEvent]:
    events = () if handle is None else handle.events_so_far()
    return [event for event in events if event.kind is EventKind.STEP_RETRIED]


def _holds(handle: TurnHandle | None, snapshot: TurnSnapshot | None) -> list[StandingHold]:
    """None of a turn that is over: there is nothing left to let go."""
    if handle is None or snapshot is None or snapshot.ending is not None:
        return []
    return list(handle.holds())


def _next_sentence(
    row: TurnRow, snapshot: TurnSnapshot | None, settings: Settings, client: Client | None, why_away: str
) -> str:
    if not why_away or row.state == "rejected":
        return explain_next(row, snapshot, settings, client and wiring_of(client).state.workers)
    if row.ended_at is not None:
        return f"ended as {row.state}; nothing more happens, Redis is away and SQL keeps what is below"
    return f"not ended as far as SQL knows; what it does now is in Redis, which is away: {why_away}"
