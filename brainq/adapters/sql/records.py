"""Write the finalizer's records, each in one transaction with its step's own row, and redact a turn's content
(`redact_logs`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from brainq.adapters.sql.database import Transaction
from brainq.adapters.sql.repositories.blobs import unlink
from brainq.adapters.sql.repositories.deliveries import ANNOUNCE_AFTER_S, ending_deliveries
from brainq.adapters.sql.store import Store
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.evaluation import RuntimeDecisionRecord
from brainq.contracts.memory import MemoryItem, Observation
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import FAILED_CALLS
from brainq.contracts.turn import CONTENT_NOT_STORED, TurnRequest, TurnResult
from brainq.contracts.view import TurnDetails
from brainq.contracts.webhook import Webhook

CONTENT_FIELDS = (
    *("system_prompt", "skill_context", "output_schema", "metadata", "greeting"),
    *("attachments", "history", "client_tools", "options"),
)
"""The fields of a request, other than its message, that contain a user's content: texts, files, schemas."""
_NOTHING = TurnDetails()


def redact_request(request: TurnRequest) -> TurnRequest:
    """Return the request without content, which is needed only until the turn has ended. Later input still becomes a
    turn of the same brain with the same limits."""
    fields = TurnRequest.model_fields
    nothing = {name: fields[name].get_default(call_default_factory=True) for name in CONTENT_FIELDS}
    return request.model_copy(update=nothing | {"user_message": CONTENT_NOT_STORED})


def redact_result(result: TurnResult) -> TurnResult:
    """Return the result without texts, sources, pack and diff. The error is reduced to the stop reason, because its
    text may quote content."""
    return result.model_copy(
        update={
            "text": "",
            "local_citations": (),
            "web_citations": (),
            "rendered_content_paths": (),
            "context_pack_json": None,
            "last_agent_message": None,
            "diff": None,
            "parsed": None,
            "error": result.stop_reason.value if result.error else result.error,
            "warnings": (
                *result.warnings,
                f"the answer is no longer in Redis, and SQL has none of it {CONTENT_NOT_STORED}",
            ),
        }
    )


@dataclass(eq=False)
class SqlRecords:
    """The writer of the finalizer's rows. With a turn's result it also writes the deliveries to `webhooks`."""

    store: Store
    webhooks: Sequence[Webhook] = ()

    def record_answer(
        self,
        claim: FinalStepClaim,
        result: TurnResult,
        redact: bool,
        details: TurnDetails = _NOTHING,
        user_message: str = "",
        answer: str | None = None,
        decision: tuple[FinalStepClaim, RuntimeDecisionRecord] | None = None,
    ) -> bool:
        """Write the assistant's message, the result, the usage of model calls, the calls' traces, the conversation and
        the webhooks' deliveries. Returns False if this was done before.

        redact         keep no content, and remove content that was written during the turn; see `redact_result`
        user_message   the message to log; empty if the turn logged it when it started
        answer         the assistant's message to log; None for the result's text
        decision       the record of the turn's decision, and the step that it belongs to; None: that step writes it
        """
        text = result.text if answer is None else answer
        ids = {"session_id": result.session_id, "turn_id": result.turn_id}

        def effect(connection: Transaction) -> None:
            if user_message:
                self.store.messages.write_user(connection, **ids, content=user_message, redact=redact)
            if text:
                self.store.messages.write_assistant(connection, **ids, content=text, redact=redact)
            self.store.spends.write(connection, result.turn_id, result.spends)
            self.store.traces.write(connection, **ids, entries=details.trace, redact=redact)
            self.store.transcripts.write(connection, **ids, messages=details.messages, redact=redact)
            if details.receipts:
                self.store.inputs.settle(connection, result.turn_id, details.receipts)
            if details.approvals:
                self.store.approvals.settle(connection, result.turn_id, details.approvals)
            if details.outside:
                self.store.calls.settle(connection, result.turn_id, details.outside)
            if redact:
                self._forget(connection, result, details)
            kept = redact_result(result) if redact else result
            failed_calls = sum(entry.status in FAILED_CALLS for entry in details.trace)
            self.store.turns.write_result(connection, kept, failed_calls)
            # The result is published a step later, so a receiver of the delivery finds it.
            self.store.deliveries.plan(connection, ending_deliveries(self.webhooks, result), ANNOUNCE_AFTER_S)
            if decision is not None:
                step, record = decision
                if self.store.steps.write_done(connection, step.turn_id, step.step, step.step_key):
                    self.store.decisions.write(connection, record)

        return self._once(claim, effect)

    def _forget(self, connection: Transaction, result: TurnResult, details: TurnDetails) -> None:
        self.store.turns.forget_request(connection, result.turn_id, redact_request)
        self.store.calls.forget(connection, result.turn_id)
        self.store.brakes.forget(connection, result.turn_id)
        unlink(connection, [result.turn_id])
        if details.receipts:
            self.store.inputs.forget(connection, result.turn_id)
        if details.approvals:
            self.store.approvals.forget(connection, result.turn_id)

    def restore_end(self, result: TurnResult, *, redact: bool) -> bool:
        """Write the result of a turn whose end SQL has lost, and the webhooks' deliveries.

        Returns False if SQL has an end, or not the turn, or if the step that writes it is a job.
        """
        if self.store.step_jobs.steps_of(result.turn_id):
            return False
        with self.store.database.transaction() as connection:
            if not self.store.turns.write_result(connection, redact_result(result) if redact else result):
                return False
            self.store.deliveries.plan(connection, ending_deliveries(self.webhooks, result), ANNOUNCE_AFTER_S)
            return True

    def record_decision(self, claim: FinalStepClaim, record: RuntimeDecisionRecord) -> bool:
        """Write the decision record. Returns False if this was done before."""
        return self._once(claim, lambda connection: self.store.decisions.write(connection, record))

    def record_memories(
        self, claim: FinalStepClaim, scope: str, items: Sequence[MemoryItem], spends: Sequence[Spend] = ()
    ) -> bool:
        """Write the turn's memories, merged with equal ones, and the usage of their extraction. Returns False if this
        was done before."""

        def effect(connection: Transaction) -> None:
            self.store.spends.add(connection, claim.turn_id, spends)
            self.store.memories.merge(
                connection, scope=scope, session_id=claim.session_id, turn_id=claim.turn_id, items=items
            )

        return self._once(claim, effect)

    def record_observations(
        self, claim: FinalStepClaim, scope: str, source_event_id: str, items: Sequence[Observation]
    ) -> bool:
        """Write the turn's observations, merged with equal ones. Returns False if this was done before."""
        ids = {"scope": scope, "session_id": claim.session_id, "turn_id": claim.turn_id}
        return self._once(
            claim,
            lambda connection: self.store.observations.merge(
                connection, **ids, source_event_id=source_event_id, items=items
            ),
        )

    def record_judges(self, claim: FinalStepClaim, session_id: str, turn_id: str, names: Sequence[str]) -> bool:
        """Write pending judgements of the turn. Returns False if this was done before."""
        return self._once(claim, lambda connection: self.store.judgements.plan(connection, session_id, turn_id, names))

    def source_event_id(self, turn_id: str) -> str:
        """Return `chat_message:<row>` of the user's message, which never changes, or "" before it is logged."""
        row = self.store.messages.user_row(turn_id)
        return "" if row is None else f"chat_message:{row}"

    def transcript(self, turn_id: str) -> tuple[Message, ...]:
        """Return the conversation in SQL; it is empty if there is none, or if it is redacted."""
        return self.store.transcripts.of_turn(turn_id)

    def note_done(self, claim: FinalStepClaim) -> None:
        """Record that a step without SQL writes of its own is done after it had failed."""
        self._once(claim, lambda _: None)

    def note_failure(self, claim: FinalStepClaim, error: str, dead: bool) -> None:
        self.store.steps.note_failure(claim.turn_id, claim.step, error, claim.tries, dead=dead)

    def _once(self, claim: FinalStepClaim, effect: Callable[[Transaction], object]) -> bool:
        def held_effect(connection: Transaction) -> None:
            if claim.is_job:
                self.store.step_jobs.require_held(connection, claim)
            effect(connection)

        return self.store.steps.run_once(claim.turn_id, claim.step, claim.step_key, held_effect)
