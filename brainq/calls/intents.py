"""Intents of calls that change something: such a call starts once its row is in SQL, and its end is written there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from brainq.calls.report import NEVER_STARTED
from brainq.contracts.call import NOT_STARTED, Intent, ToolFailure, ToolOutcome
from brainq.contracts.claim import CallClaim
from brainq.observe.logs import logger

if TYPE_CHECKING:
    from brainq.people.brakes import BrakeDesk
    from brainq.state.calls import RedisCalls
    from brainq.store.repositories.calls import Calls

log = logger("brainq.calls")
StartWord = Literal["started", "closed", "left"]
"""closed   its turn wants no more calls: it is over, and never started
left     somebody else goes on with it: its lanes are the next attempt's, or were left by whoever gave it up
"""


@dataclass(frozen=True, slots=True)
class IntentGate:
    """Lets each attempt start once at most, and writes down how it ended.

    brakes   puts back the holds that Redis has lost
    """

    calls: RedisCalls
    intents: Calls
    brakes: BrakeDesk | None

    def start(self, claim: CallClaim, *, redact: bool) -> StartWord:
        """Insert the intent, then check the leases once more. Only after `started` may its function be called."""
        if not self._intend(claim, redact=redact):
            log.warning("call did not start", turn_id=claim.turn_id, call_id=claim.call_id)
            word = self.calls.beat(claim)
            if word == "OK" and self._never_starts(claim):
                self.calls.let_lapse(claim)  # the next attempt need not wait for it
            return "closed" if word == "CLOSED" else "left"
        try:
            word = self.calls.start(claim)
        except Exception:
            # Redis is away. The intent is stored, and only we know that nothing came of it: a rescue reads that.
            self.record(claim, NEVER_STARTED)
            raise
        if word == "OK":
            return "started"
        self.record(claim, NEVER_STARTED)
        return "closed" if word == "CLOSED" else "left"

    def record(self, claim: CallClaim, outcome: ToolOutcome, *, late: bool = False) -> None:
        """How the attempt ended; `late`: after it was settled as something else."""
        try:
            self.intents.record_outcome(claim.turn_id, claim.call_id, claim.attempt, outcome, late)
        except Exception as failure:
            # The effect has happened; Redis still gets its result. Only the evidence in SQL is thinner.
            log.error("outcome not recorded in SQL", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id)

    def _never_starts(self, claim: CallClaim) -> bool:
        """Whether SQL says that this attempt never started, and never will. Else somebody else may be at work on it,
        whose claim Redis has lost."""
        found = self.intents.void(
            turn_id=claim.turn_id,
            call_id=claim.call_id,
            attempt=claim.attempt,
            session_id=claim.session_id,
            tool=claim.tool,
            effect=claim.effect,
        )
        outcome = found.outcome
        return found.state == "void" or (isinstance(outcome, ToolFailure) and outcome.error_type == NOT_STARTED)

    def _intend(self, claim: CallClaim, *, redact: bool) -> bool:
        """False: a rescue took the call from us, or a brake holds that Redis had lost. Then it is asked for again,
        and meets the brake that was put back."""
        intent = Intent(
            turn_id=claim.turn_id,
            call_id=claim.call_id,
            attempt=claim.attempt,
            session_id=claim.session_id,
            tool=claim.tool,
            effect=claim.effect,
            args_hash=claim.args_hash,
            args_json=None if redact else json.dumps(claim.arguments),
            idempotency_key=claim.idempotency_key,
            owner=claim.owner,
        )
        if self.brakes is None:
            return self.intents.start(**intent)
        if self.intents.start(unless_braked=True, **intent):
            return True
        # What Redis knows of, it has judged when the call was claimed, by its own clock.
        return not self.brakes.restore(claim.session_id, claim.turn_id) and self.intents.start(**intent)
