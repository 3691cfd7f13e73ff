"""TurnFinalizer: runs the finalizer steps of a turn when their doorbells arrive.

    citations ► usage ► log ► result ► the steps after the result

The chain in Redis has one position, under a lease. A worker that has settled a step may claim the next one in the same
script instead of ringing a doorbell, which costs more than most steps do. A step that the result depends on is retried
in the chain. Any other step that fails, loses its worker or takes long becomes a job in SQL (`late_steps.py`), and the
chain continues without it.

In older builds, steps overtook the failing one in Redis. This build continues such a chain from the failing step and
skips the steps in the claim's `done_before`. A chain of this build has no such fields, so older builds continue it as
their own; they leave its jobs to this build.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.claim import FinalStepClaim, NoClaim
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.contracts.turn import LATE_FAILURE_WARNINGS, TurnResult
from brainq.engine.finalize.late_steps import LateSteps
from brainq.engine.finalize.recall import EndedTurnCache
from brainq.engine.finalize.result import BackgroundCallbacks, early_result_warning, make_result
from brainq.engine.finalize.step_order import RESULT, FinalizerRuntime
from brainq.engine.finalize.steps import (
    FIRST_STEP,
    PROCESS_START_S,
    FinalStep,
    StepContext,
    error_type_name,
    shown_failure,
    step_limit_s,
)
from brainq.runtime.leases import LeaseRenewal, LeaseRenewer
from brainq.runtime.observe.logs import MissingBrainLog, logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.spans import record_turn
from brainq.runtime.observe.tracing import tracer
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents
from brainq.runtime.processes.later_threads import LaterThreads
from brainq.runtime.processes.threads import ThreadCall

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain

log = logger("brainq.finalize")
VISIT_S = 1.0  # a visit claims no further step after this time, because waiting turns come first
RESULT_WAITS_S = 1.0  # the maximum delay of the result by a callback of the brain
NEVER_DEAD = frozenset({"log", RESULT})  # every ending must be recorded in SQL, and every caller must get a result
LOST_WORKER = "its worker died or lost its connection"


class TurnFinalizer:
    """A runner of finalizer steps. It has no state of its own: any process may run any step of any turn.

    missing      the runtime of turns whose brain no process has; by default the default brain's
    late         runs the steps that the chain continues without
    later        keeps threads free for steps that lead to results; None to count no threads
    """

    def __init__(
        self,
        *,
        owner: str,
        late: LateSteps,
        missing: FinalizerRuntime | None = None,
        chain: RedisFinalChain,
        beats: LeaseRenewer,
        later: LaterThreads | None = None,
        visit_s: float = VISIT_S,
    ) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)  # each claim has a separate owner name, as in turn/coordinator.py
        self._brains = late.brains
        self._missing = missing or late.brains.default
        self._unknown_brains = MissingBrainLog()
        self.chain, self.late, self.later = chain, late, later
        self._beats = beats
        self.visit_s = visit_s
        self.cache = EndedTurnCache(chain)
        self.background = BackgroundCallbacks()

    def run(self, session_id: str, turn_id: str, step_name: str, events: WorkEvents = UNWATCHED) -> str:
        """Answer one doorbell, then run the next steps until another turn needs this worker.

        Returns the outcome of the doorbell's own step as a word. The other steps are reported to `events`.
        """
        owner = f"{next(self._numbers)}@{self._owner}"
        claim = self.cache.claim(session_id, turn_id, step_name, owner, and_messages=step_name == FIRST_STEP)
        if isinstance(claim, NoClaim):
            if claim.why == "no_brain":
                self._unknown_brains.warn("step", turn_id, self._brains.names)
            if claim.why in ("gone", "stale"):  # the chain has passed the step, which may be a job now
                return self.late.answer(session_id, turn_id, step_name)
            log.debug("doorbell dropped", turn_id=turn_id, step=step_name, why=claim.why)
            return f"dropped: {claim.why}"
        if claim.lost:
            COUNTERS.add(m.LAPSED, "finalizer_step")
        return ChainVisit(self, claim, events, time.monotonic() + self.visit_s).run()

    def follow(self, claim: FinalStepClaim, until: float, events: WorkEvents = UNWATCHED) -> None:
        """Run the first step of a chain, which this thread claimed when the turn ended, and the steps after it.

        until   the time after which this thread claims no further step, in monotonic seconds
        """
        ChainVisit(self, claim, events, min(until, time.monotonic() + self.visit_s)).follow()

    def run_claimed(self, claim: FinalStepClaim) -> None:
        """Run a step that another process has claimed and will settle. Raises what the step raises."""
        if claim.is_job:
            self.late.run_claimed(claim)
            return
        if (step := self.work(claim).order.get(claim.step)) is None:
            raise LookupError(f"step {claim.step!r} is not known here")
        self.late.steps.run(step, self.context(claim), bounded=False)

    def deliver(self, session_id: str, turn_id: str) -> str:
        """Publish the result before the chain has reached it, because its steps fail or no worker runs them."""
        turn = self.chain.ended(session_id, turn_id)
        if turn is None:
            return "gone"
        why = turn.failing_error or self._unserved_reason(turn.request.brain)
        return self.chain.publish(make_result(turn, warnings=early_result_warning(why))).lower()

    def work(self, claim: FinalStepClaim) -> FinalizerRuntime:
        """Return the finalizer runtime of the turn's brain."""
        return self._brains.of(claim.brain) or self._missing

    def context(self, claim: FinalStepClaim, outgoing: list[TurnResult] | None = None) -> StepContext:
        """Return the context of a step of the chain."""
        read, brain, late = partial(self.cache.turn, claim), self.work(claim).brain, self.late
        return StepContext(claim, read, self.chain, late.records, brain, late.parents, outgoing)

    def beating(self, claim: FinalStepClaim) -> LeaseRenewal:
        """Renew the chain's lease. A step that loses it still runs to its end: its SQL writes commit only once."""
        return self._beats.renew(lambda: self.chain.beat(claim), _ignore)

    def _unserved_reason(self, brain: str | None) -> str:
        reason = "no finalizer worker has run its next step"
        if self._brains.of(brain) is not None:
            return reason
        return f"{reason}; its brain {brain!r} is not among {', '.join(self._brains.names)}"


class ChainVisit:
    """One worker's visit to one turn's chain.

    following   the claim of this worker's next step, or None if another worker continues the chain
    """

    def __init__(self, finalizer: TurnFinalizer, claim: FinalStepClaim, events: WorkEvents, until: float) -> None:
        self._finalizer = finalizer
        self._chain = finalizer.chain
        self._work = finalizer.work(claim)
        self._events = events
        self._until = until
        self._last: Callable[[], object] | None = None  # a callback that only this thread can wait for
        self._first = claim
        self._written: Collection[str] = ()  # steps whose rows another step has written
        self.following: FinalStepClaim | None = None

    def run(self) -> str:
        """Run steps until another worker continues the chain. Returns the outcome of the first step as a word."""
        return self._visit(partial(self._answer, self._first))

    def follow(self) -> None:
        """Run steps, and report each to `events`, because no doorbell was rung for the first step either."""
        self._visit(lambda: self._watched(self._first, self._answer) or "")

    def _visit(self, first: Callable[[], str]) -> str:
        later = self._finalizer.later
        try:
            did = first()
            while following := self.following:
                self._watched(following, self._answer)
            if self._last is not None:
                self._last()
        finally:
            if later is not None:
                later.leave(self._first.turn_id)
        return did

    def _watched(self, claim: FinalStepClaim, act: Callable[[FinalStepClaim], str]) -> None:
        """Report the start and the end of a step that had no doorbell, for Flower and other monitors of tasks."""
        began, did = time.monotonic(), WorkOutcome("failed", WorkFailure.STEP_FAILED)
        self._events.began(claim)
        try:
            did = act(claim)
        finally:
            self._events.ended(claim, did, time.monotonic() - began)

    def _answer(self, claim: FinalStepClaim) -> str:
        """Run a claimed step and settle it. Returns the outcome as a word."""
        self.following = None
        if claim.sent and self._finalizer.later is not None:
            self._finalizer.later.enter(claim.turn_id)
        order = self._work.order
        if (step := order.get(claim.step)) is None:
            log.warning("step is not known here", turn_id=claim.turn_id, step=claim.step)
            return self._go_on(claim)
        return self._do_leading(claim, step) if order.leads_to_result(step.name) else self._do_other(claim, step)

    def _do_leading(self, claim: FinalStepClaim, step: FinalStep) -> str:
        """Run a step that the result depends on, and the steps that may share its claim. Settle them together."""
        # The script that settles the step may also publish the result.
        context = self._finalizer.context(claim, [])
        context = replace(context, beside=self._work.order.beside(context))
        failure, done = None, ""
        with self._finalizer.beating(claim):
            try:
                self._require_tries(claim)
                self._finalizer.late.steps.run(step, context)
                done = step.name
                for joined in self._work.order.joined_to(context):
                    if time.monotonic() >= self._until:
                        break
                    self._do_joined(joined, context)
                    done = joined.name
            except Exception as raised:
                failure = raised
        if failure is not None and not done:
            return self._failed(claim, failure)
        self._note_done(claim)
        self._note_written(context)
        did = self._go_on(claim, context.outgoing or (), done)
        if failure is not None and (following := self.following) is not None:  # claimed now, but already failed
            self.following = None
            self._watched(following, partial(self._failed, failure=failure))
        return did

    def _note_written(self, context: StepContext) -> None:
        """Mark as done the steps whose rows another step has already written."""
        for name in context.written:
            if (step := self._work.order.get(name)) is not None:
                self._do_joined(step, context)
        self._written = {*self._written, *context.written}

    def _do_joined(self, step: FinalStep, context: StepContext) -> None:
        """Run a step under the claim of another step."""
        claim, began = context.claim, time.monotonic()
        context = replace(context, claim=replace(claim, step=step.name, fence=claim.fence + 1))
        self._finalizer.late.steps.run(step, context)
        self._events.began(context.claim)
        self._events.ended(context.claim, "next", time.monotonic() - began)

    def _do_other(self, claim: FinalStepClaim, step: FinalStep) -> str:
        """Run a step that the result does not depend on, or make it a job."""
        try:
            if claim.lost or self._finalizer.late.waits(claim.turn_id, self._work.order.needs(step.name)):
                return self._leave(claim, claim.tries - 1)
            with self._finalizer.beating(claim):
                running = self._run_in_time(step, self._finalizer.context(claim))
        except Exception as failure:
            return self._failed(claim, failure)
        if running is not None:
            return self._finish_in_background(step, claim, running)
        self._note_done(claim)
        return self._go_on(claim)

    def _run_in_time(self, step: FinalStep, context: StepContext) -> ThreadCall[None] | None:
        """Run the step, for at most a second if the result comes after it. Returns the call if it is still running
        then."""
        steps = self._finalizer.late.steps
        if context.claim.sent or step_limit_s(step) is None:
            steps.run(step, context)
            return None
        running = ThreadCall(f"step {step.name!r}", lambda: steps.run(step, context, bounded=False))
        if not running.wait(RESULT_WAITS_S):
            return running
        running.result(RESULT_WAITS_S)
        return None

    def _finish_in_background(self, step: FinalStep, claim: FinalStepClaim, running: ThreadCall[None]) -> str:
        """Make a slow callback a job, so that the chain continues and this worker can serve other turns."""
        late = self._finalizer.late
        limit_s = (step_limit_s(step) or 0.0) + (PROCESS_START_S if claim.lost else 0.0)
        try:
            late.open(claim, claim.tries, held=True)
        except Exception as failure:
            return self._failed(claim, failure)
        end = partial(late.finish, claim, self._work, running, limit_s)
        if not self._finalizer.background.start(end):
            self._last, self._until = end, float("inf")  # there may be no other worker to send the result
        self._go_on(claim)
        return "behind"

    def _require_tries(self, claim: FinalStepClaim) -> None:
        if claim.tries > self._finalizer.late.jobs.max_tries and claim.step not in NEVER_DEAD:
            raise RuntimeError(f"{LOST_WORKER} in each of {claim.tries - 1} tries")

    def _failed(self, claim: FinalStepClaim, failure: Exception) -> str:
        """Give up a failed step, or have it retried: in the chain if the result depends on it, otherwise as a job."""
        late, redacts = self._finalizer.late, self._work.redacts
        is_dead = claim.tries >= late.jobs.max_tries and claim.step not in NEVER_DEAD
        log.error("step failed", failure=failure, turn_id=claim.turn_id, step=claim.step, tries=claim.tries)
        error, kind = shown_failure(failure, redact=redacts), error_type_name(failure)
        failed = WorkOutcome("failed", WorkFailure.STEP_FAILED, kind)
        failing = f"{claim.step}: {kind}"
        try:
            if not is_dead and not self._work.order.leads_to_result(claim.step):
                self._leave(claim, claim.tries, error=error, failing=failing)
                COUNTERS.add(m.STEP_FAILURES, claim.step, "again")
                return failed
            late.records.note_failure(claim, error, is_dead)
        except Exception as worse:
            # SQL is probably unavailable. A step is given up only if that can be recorded; otherwise it is retried.
            is_dead = False
            log.warning("failure not recorded", turn_id=claim.turn_id, step=claim.step, why=type(worse).__name__)
        COUNTERS.add(m.STEP_FAILURES, claim.step, "dead" if is_dead else "again")
        if is_dead:
            if warning := LATE_FAILURE_WARNINGS.get(claim.step):
                self._chain.warn_later(claim.session_id, claim.turn_id, warning, applies=True)
            self._go_on(claim)
        else:
            self._chain.retry(claim, late.jobs.backoff.after_s(claim.tries), failing)
        return failed

    def _leave(self, claim: FinalStepClaim, tries: int, *, error: str | None = None, failing: str = "") -> str:
        """Make the step a job that has had `tries` tries, and continue the chain without it."""
        self._finalizer.late.open(claim, tries, error=error)
        if failing and not claim.sent:
            self._chain.note_failing(claim, *early_result_warning(failing))
        if error is None:
            self._chain.ring_step(claim.session_id, claim.turn_id, claim.step)
        self._go_on(claim)
        return "left"

    def _go_on(self, claim: FinalStepClaim, outgoing: Sequence[TurnResult] = (), done: str = "") -> str:
        """Settle the claim, whose last finished step is `done`. This worker claims the next step if it may."""
        finalizer, done = self._finalizer, done or claim.step
        stay = time.monotonic() < self._until
        if not (next_step := self._work.order.next_step(done, {*claim.done_before, *self._written})):
            for result in outgoing:
                self._chain.publish(result)
            found = finalizer.cache.finish(claim)
        elif outgoing:
            stay = stay and (finalizer.later is None or finalizer.later.try_enter(claim.turn_id))
            found = self._chain.send(claim, next_step, outgoing[0], stay=stay)
        else:
            found = self._chain.go_on(claim, next_step, stay=stay)
        if tracer() is not None and found != "LOST" and self._work.order.has_result(claim.step, done):
            self._record_turn(claim)
        if isinstance(found, FinalStepClaim):
            self.following = found
            return "next"
        return found.lower()

    def _note_done(self, claim: FinalStepClaim) -> None:
        if claim.tries == 1:
            return  # a step that never failed and writes nothing itself has no row
        try:
            self._finalizer.late.records.note_done(claim)
        except Exception as failure:
            # The recorded state of the step is one try behind; the chain does not wait for it.
            log.warning("end not recorded", turn_id=claim.turn_id, step=claim.step, why=type(failure).__name__)

    def _record_turn(self, claim: FinalStepClaim) -> None:
        """Record the turn in its trace. The result is already out, so a failure of telemetry must not fail the step."""
        try:
            record_turn(self._finalizer.cache.turn(claim), self._work.brain.name)
        except Exception as failure:
            log.warning("turn not recorded in its trace", turn_id=claim.turn_id, why=type(failure).__name__)


def _ignore(word: str) -> None:
    """Do nothing: a step that has lost its lease may still finish, because its SQL writes commit only once."""
