"""The chain as a step sees it that runs again on its own, mostly after the result went out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from brainq.contracts.claim import Dropped, StepClaim, StepDropped
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.recall import Recall
from brainq.ports.finals import Finals


@dataclass(eq=False)
class SentChain:
    """Fits `ports.finals.Finals`. The chain in Redis neither waits for this step nor is moved by it.

    What SQL or a caller has stays as it is: a text is no longer changed, a result not sent again.
    """

    live: Finals
    recall: Recall

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        return self.recall.ended(session_id, turn_id)

    def details(self, session_id: str, turn_id: str) -> TurnDetails:
        return self.live.details(session_id, turn_id)

    def details_of(self, claim: StepClaim) -> TurnDetails:
        return self.details(claim.session_id, claim.turn_id)

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        return self.live.ring_judge(session_id, turn_id, judge)

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        return self.live.published(session_id, turn_id) or self.recall.result(turn_id)

    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]:
        # A turn that Redis has let go went out before. One that it has, it sends once: as SQL has it, unless that
        # copy is redacted.
        if self.live.ended(result.session_id, result.turn_id) is None:
            return "ALREADY"
        kept = None if self.recall.is_redacted(result.turn_id) else self.recall.result(result.turn_id)
        return self.live.publish(kept or result)

    def warn_later(self, session_id: str, turn_id: str, warning: str, *, stands: bool) -> None:
        self.live.warn_later(session_id, turn_id, warning, stands=stands)

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        # Writing to a turn that Redis has let go would leave a key without a lifetime behind.
        if self.published(session_id, turn_id) is None:
            self.live.set_text(session_id, turn_id, text)

    def claim(self, session_id: str, turn_id: str, step: str, owner: str) -> StepDropped:
        return Dropped("stale")

    def claim_and_look(self, session_id: str, turn_id: str, step: str, owner: str) -> StepDropped:
        return Dropped("stale")

    def look(self, claim: StepClaim) -> EndedTurn | None:
        return self.ended(claim.session_id, claim.turn_id)

    def beat(self, claim: StepClaim) -> Literal["OK"]:
        return "OK"

    def go_on(self, claim: StepClaim, next_step: str, *, stay: bool) -> Literal["LOST"]:
        return "LOST"

    def go_on_and_read(self, claim: StepClaim, next_step: str, *, stay: bool) -> Literal["LOST"]:
        return "LOST"

    def send(self, claim: StepClaim, next_step: str, result: TurnResult, *, stay: bool) -> Literal["LOST"]:
        return "LOST"

    def go_ahead(
        self,
        claim: StepClaim,
        ahead: str,
        past: str,
        *,
        stay: bool,
        after_s: float | None = None,
        error: str = "",
        uncounted: bool = False,
    ) -> Literal["LOST"]:
        return "LOST"

    def finish(self, claim: StepClaim) -> Literal["LOST"]:
        return "LOST"

    def retry(self, claim: StepClaim, after_s: float, error: str) -> Literal["LOST"]:
        return "LOST"
