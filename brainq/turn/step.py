"""One step: the turn begins if need be, the step is prepared, made to fit, and asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

from brainq.brain.brain import Brain
from brainq.contracts.claim import TurnClaim, TurnStart
from brainq.contracts.model import Price
from brainq.contracts.view import TurnView
from brainq.errors import BrainqError
from brainq.ports.people import Brakes
from brainq.ports.redis_turns import Budgets, Turns
from brainq.ports.sql import ApprovalRows
from brainq.turn.attempts import StepRunner, model_error_end
from brainq.turn.auxiliary import AuxiliaryWork, OutcomeWord
from brainq.turn.begin import TurnStarter, with_start
from brainq.turn.outage import OutageRetry
from brainq.turn.prompt.blob_cache import BlobCache
from brainq.turn.prompt.preparer import TurnPreparer
from brainq.turn.prompt.tool_selection import SemanticToolSelector
from brainq.turn.replies import ReplyHandler
from brainq.turn.step_request import StepOutcome, StepPostponed, StepPreparer, step_request


class StepPipeline:
    """Takes one step of a turn. None means that the turn was lost to another owner."""

    def __init__(
        self,
        *,
        brain: Brain,
        turns: Turns,
        budgets: Budgets,
        beginner: TurnStarter,
        auxiliary: AuxiliaryWork,
        approvals: ApprovalRows,
        brakes: Brakes,
        price: Price,
        blobs: BlobCache,
        selector: SemanticToolSelector | None,
        preparer: TurnPreparer | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._brain = brain
        self._turns = turns
        self._beginner = beginner
        self._auxiliary = auxiliary
        self._brakes = brakes
        self._price = price
        self._preparer = StepPreparer(brain, selector, preparer)
        replies = ReplyHandler(brain=brain, turns=turns, budgets=budgets, approvals=approvals)
        self._attempts = StepRunner(brain=brain, turns=turns, replies=replies, price=price, blobs=blobs, pause=pause)

    def run(self, claim: TurnClaim, view: TurnView, lost: Callable[[], bool], trying: OutageRetry) -> StepOutcome:
        earlier = 0 if view.begun else trying(lambda: self._beginner.earlier_turns(claim, view))
        try:
            setting = self._beginner.step_setting(view, earlier)
        except BrainqError as failure:
            return model_error_end(str(failure))
        start: TurnStart | None = None
        if not view.begun:
            start = self._beginner.start(claim, view, setting, trying)
            view = with_start(view, start)

        opening = self._auxiliary.opening_wave(view)
        if opening is not None:
            open_wave = partial(self._auxiliary.dispatch_opening, claim, opening, trying)
            if did := self._begin_then(claim, start, trying, open_wave):
                return _postponed(did)

        step = self._preparer.prepare(view, setting)
        if step.drain.readiness is not None and view.flag:
            trying(lambda: self._brakes.lift(claim.session_id, claim.turn_id))
        if self._auxiliary.is_full(view, step):
            compact = partial(self._auxiliary.compact, claim, view, step, trying)
            if did := self._begin_then(claim, start, trying, compact):
                return _postponed(did)

        request = step_request(view, setting, step, self._price, len(self._brain.tools.specs), start)
        return self._attempts.run(claim, view, request, lost, trying)

    def _begin_then(
        self, claim: TurnClaim, start: TurnStart | None, trying: OutageRetry, work: Callable[[], OutcomeWord]
    ) -> OutcomeWord:
        """Do what comes before the step. The turn has begun then, and not only with the step."""
        if start is not None and not trying(lambda: self._turns.begin(claim, start)):
            return "lost"
        return work()


def _postponed(did: OutcomeWord) -> StepOutcome:
    """What came before the step ended the advance."""
    return StepPostponed(did) if did != "lost" else None
