"""Intents of calls with effects: a row in SQL before the call starts, which later records how the call ended."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from brainq.contracts.call import NOT_STARTED, Intent, ToolFailure, ToolOutcome
from brainq.contracts.claim import CallClaim
from brainq.engine.calls.report import NEVER_STARTED
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.sql.repositories.calls import Calls
    from brainq.engine.people.brakes import BrakeDesk

log = logger("brainq.calls")
StartWord = Literal["started", "closed", "left"]
"""Whether a call may start.

started   its function may be called now
closed    its turn accepts no more calls, and this call never started
left      another attempt continues with the call, so this one does nothing more
"""


@dataclass(frozen=True, slots=True)
class IntentGate:
    """A gate that lets each attempt start at most once, and records how it ended.

    brakes   restores the holds that Redis has lost
    """

    calls: RedisCalls
    intents: Calls
    brakes: BrakeDesk | None

    def start(self, claim: CallClaim, *, redact: bool) -> StartWord:
        """Insert the intent, then check the leases again. The function may be called only if this returns `started`."""
        if not self._intend(claim, redact=redact):
            log.warning("call did not start", turn_id=claim.turn_id, call_id=claim.call_id)
            word = self.calls.beat(claim)
            if word == "OK" and self._never_starts(claim):
                self.calls.let_lapse(claim)  # so that the next attempt does not wait until the lease lapses
            return "closed" if word == "CLOSED" else "left"
        try:
            word = self.calls.start(claim)
        except Exception:
            # Redis is unavailable. The intent is stored, but only this process knows that the call never started. It
            # records that, so that a rescue can read it.
            self.record(claim, NEVER_STARTED)
            raise
        if word == "OK":
            return "started"
        self.record(claim, NEVER_STARTED)
        return "closed" if word == "CLOSED" else "left"

    def record(self, claim: CallClaim, outcome: ToolOutcome, *, late: bool = False) -> None:
        """Record how the attempt ended. `late` means that the call has already been settled with another outcome."""
        try:
            self.intents.record_outcome(claim.turn_id, claim.call_id, claim.attempt, outcome, late)
        except Exception as failure:
            # The effect has happened and Redis still gets the result. Only the evidence in SQL is incomplete.
            log.error("outcome not recorded in SQL", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id)

    def _never_starts(self, claim: CallClaim) -> bool:
        """Return whether SQL confirms that this attempt never started and never will. If SQL does not, another worker
        may be running the attempt under a claim that Redis has lost."""
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
        """Insert the intent. Returns False if a rescue has already taken the call, or if SQL has a brake that Redis had
        lost. The brake is then restored, and holds the call when it is claimed again."""
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
        # Redis has checked the brakes that it knows, by its own clock, when the call was claimed.
        return not self.brakes.restore(claim.session_id, claim.turn_id) and self.intents.start(**intent)
