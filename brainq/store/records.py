"""What the finalizer writes, each in one transaction with its step's own row. Fits `finalize.ports.Records`."""

from __future__ import annotations

from sqlalchemy import Connection

from brainq.contracts.claim import StepClaim
from brainq.contracts.decision import RuntimeDecisionRecord
from brainq.contracts.turn import TurnResult
from brainq.store.store import Store


class SqlRecords:
    """The finalizer's rows."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def record_answer(self, claim: StepClaim, result: TurnResult, redact: bool) -> bool:
        """The assistant's message and the turn's result; False when this was done before."""

        def effect(connection: Connection) -> None:
            if result.text:
                self._store.messages.write_assistant(
                    connection,
                    session_id=result.session_id,
                    turn_id=result.turn_id,
                    content=result.text,
                    redact=redact,
                )
            self._store.turns.write_result(connection, result)

        return self._store.steps.run_once(claim.turn_id, claim.step, claim.step_key, effect)

    def record_decision(self, claim: StepClaim, record: RuntimeDecisionRecord) -> bool:
        """The decision record; False when this was done before."""

        def effect(connection: Connection) -> None:
            self._store.decisions.write(connection, record)

        return self._store.steps.run_once(claim.turn_id, claim.step, claim.step_key, effect)

    def note_done(self, claim: StepClaim) -> None:
        """A step that failed before and writes nothing itself is done: its row says so."""
        self._store.steps.run_once(claim.turn_id, claim.step, claim.step_key, lambda _: None)

    def note_failure(self, claim: StepClaim, error: str, dead: bool) -> None:
        self._store.steps.note_failure(claim.turn_id, claim.step, claim.step_key, error, claim.tries, dead)
