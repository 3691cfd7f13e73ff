"""What Redis and SQL know of one turn, gathered."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from brainq.cli.reach import Observed, find_turn
from brainq.cli.turn_calls import read_messages
from brainq.contracts.approval import Approval
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.hold import StandingHold
from brainq.contracts.mailbox import Receipt
from brainq.contracts.message import Message
from brainq.contracts.rows import CallRow, InputRow, JudgementRow, MemoryRow, ObservationRow, StepRow, TurnRow
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.trace import ToolTraceEntry
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.usage import Spend
from brainq.turn.explain import explain


@dataclass(frozen=True)
class TurnFacts:
    """`snapshot` is None when Redis does not know the turn or is away; `next` says what happens next, and why.

    trace, spends             from SQL, which has them from the finalizer's `log` step on
    memories, observations    those first seen in this turn
    inputs                    what was sent into it, and what became of each
    retries                   of the model, as far as Redis still has the turn's events
    messages                  its conversation: calls with their arguments, and results; `no_messages` says why none
    """

    row: TurnRow
    request: TurnRequest | None
    snapshot: TurnSnapshot | None
    result: TurnResult | None
    steps: list[StepRow]
    intents: list[CallRow]
    trace: list[ToolTraceEntry]
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

    @property
    def state(self) -> str:
        return self.snapshot.state.value if self.snapshot else self.row.state

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
            "calls": [entry.model_dump(mode="json") for entry in self.trace],
            "spends": [spend.model_dump(mode="json") for spend in self.spends],
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


def collect_facts(seen: Observed, sought: str) -> TurnFacts:
    """Raises TurnNotFound, or InvalidInput when several turns begin like this."""
    row = find_turn(seen.store, sought)
    snapshot = seen.client.wiring.state.snapshots.of(row.session_id, row.turn_id) if seen.client else None
    result = seen.store.turns.result(row.turn_id)
    if result is None and seen.client is not None:
        body = seen.client.wiring.state.events.result(row.session_id, row.turn_id)
        result = None if body is None else TurnResult.model_validate_json(body)
    messages, no_messages = read_messages(seen, row, snapshot)
    return TurnFacts(
        row=row,
        request=seen.store.turns.request(row.turn_id),
        snapshot=snapshot,
        result=result,
        steps=seen.store.steps.of(row.turn_id),
        intents=seen.store.calls.of(row.turn_id),
        trace=seen.store.traces.of(row.turn_id),
        spends=seen.store.spends.of(row.turn_id) or list(result.spends if result else ()),
        judgements=seen.store.judgements.of(row.turn_id),
        memories=seen.store.memories.of_turn(row.turn_id),
        observations=seen.store.observations.of_turn(row.turn_id),
        approvals=_approvals(seen, row.turn_id),
        holds=_holds(seen, snapshot),
        inputs=_inputs(seen, row),
        messages=messages,
        no_messages=no_messages,
        retries=_retries(seen, row),
        next=_next(seen, row, snapshot),
    )


def _retries(seen: Observed, row: TurnRow) -> list[TurnEvent]:
    found: list[TurnEvent] = []
    after = 0
    while seen.client is not None:
        batch = seen.client.wiring.state.events.read(row.session_id, row.turn_id, after, 0)
        if not batch:
            break
        found += [event for event in batch if event.kind is EventKind.STEP_RETRIED]
        after = batch[-1].seq
    return found


def _approvals(seen: Observed, turn_id: str) -> list[Approval]:
    if seen.client is None:
        return seen.store.approvals.of(turn_id)
    return list(seen.client.wiring.people.approvals.of(turn_id))


def _holds(seen: Observed, snapshot: TurnSnapshot | None) -> list[StandingHold]:
    """None of a turn that is over: there is nothing left to let go."""
    if seen.client is None or snapshot is None or snapshot.ending is not None:
        return []
    return list(seen.client.wiring.state.holds.of(snapshot.session_id, snapshot.turn_id))


def _inputs(seen: Observed, row: TurnRow) -> list[tuple[InputRow, Receipt]]:
    """Redis knows first what was consumed; SQL is told at the turn's end."""
    rows = seen.store.inputs.of(row.turn_id)
    told: dict[str, str] = {}
    if rows and seen.client is not None:
        told = seen.client.wiring.state.mailbox.receipts(row.session_id, row.turn_id)
    found: list[tuple[InputRow, Receipt]] = []
    for sent in rows:
        receipt = sent.receipt
        word, _, step = told.get(sent.client_message_id, "").partition(" ")
        if receipt.state == "accepted" and word == "consumed":
            receipt = receipt.model_copy(update={"state": "consumed", "step": int(step)})
        found.append((sent, receipt))
    return found


def _next(seen: Observed, row: TurnRow, snapshot: TurnSnapshot | None) -> str:
    settings = seen.settings
    if snapshot is not None:
        return explain(snapshot, sweep_s=settings.sweep_s, rering_s=settings.rering_s)
    if row.state == "rejected":
        return "rejected when it was submitted; it never ran"
    if row.ended_at is not None:
        where = "Redis is away" if seen.client is None else "Redis has let it go"
        return f"ended as {row.state}; nothing more happens, {where} and SQL keeps what is below"
    if seen.client is None:
        return f"not ended as far as SQL knows; what it does now is in Redis, which is away: {seen.why}"
    return "accepted in SQL and not in Redis: a sweeper puts it there within seconds, if a coordinator runs"
