"""TurnFinalizer: answers a doorbell of the chain by a visit, one step or several of a turn.

Each step is claimed, retried, given up and recorded by itself. The worker that has settled a step may claim the next
in the same script, because a doorbell costs more than most steps. Steps that do not need a failed step pass it.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN

from brainq.contracts.claim import FinalStepClaim, NoClaim
from brainq.contracts.status import WorkFailure, WorkOutcome
from brainq.contracts.turn import LATE_FAILURE_WARNINGS, TurnResult
from brainq.engine.brain.brains import ByBrain
from brainq.engine.finalize.recall import EndedTurnCache
from brainq.engine.finalize.result import (
    RESULT_WAITS_S,
    BackgroundCallbacks,
    ResultFirst,
    early_result_warning,
    make_result,
)
from brainq.engine.finalize.step_order import RESULT, FinalizerRuntime, StepHistory, with_earlier_tries
from brainq.engine.finalize.steps import (
    FIRST_STEP,
    MAX_LOST_WORKERS,
    FinalStep,
    RunInQuarantine,
    StepContext,
    around_step,
    error_type_name,
)
from brainq.engine.jobs import Backoff
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe.logs import MissingBrainLog, logger
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.spans import final_span, record_turn
from brainq.runtime.observe.tracing import in_span, tracer
from brainq.runtime.observe.work_events import UNWATCHED, WorkEvents
from brainq.runtime.processes.later_threads import LaterThreads
from brainq.runtime.processes.threads import ThreadCall, call_within
from brainq.runtime.text.failures import failure_words

if TYPE_CHECKING:
    from brainq.adapters.redis.finals import RedisFinalChain
    from brainq.adapters.sql.records import SqlRecords
    from brainq.engine.people.children import ChildDesk

log = logger("brainq.finalize")
RETRY = Backoff(first_s=0.5, factor=2.0, longest_s=60.0, spread=(0.5, 1.0))
LIMIT_S = 60.0  # of a step that runs code of the brain's; a step may say otherwise by `limit_s`
MAX_TRIES = 8  # then the step is dead: seen in `show`, and the chain goes on without it
PROCESS_START_S = 10.0  # which a process of a step's own may take more
VISIT_S = 1.0  # a visit this old takes no further step: those who wait come first
NEVER_DEAD = frozenset({"log", RESULT})  # SQL must learn of every ending, and every caller get a result


class TurnFinalizer:
    """Runs finalizer steps. Holds no state of its own: any process may run any step of any turn.

    missing      for turns whose brain is no longer in any process; None: as the default brain's
    quarantine   runs steps that lost their worker again and again, each in a process of its own
    later        leaves threads to what leads to results; None: they are not counted
    """

    def __init__(
        self,
        *,
        owner: str,
        brains: ByBrain[FinalizerRuntime],
        missing: FinalizerRuntime | None = None,
        chain: RedisFinalChain,
        records: SqlRecords,
        beats: LeaseRenewer,
        parents: ChildDesk | None = None,
        quarantine: RunInQuarantine | None = None,
        later: LaterThreads | None = None,
        max_tries: int = MAX_TRIES,
        visit_s: float = VISIT_S,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)  # each claim signs as an owner of its own, as in engine/turn/coordinator.py
        self._brains = brains
        self._missing = missing or brains.default
        self._left = MissingBrainLog()
        self._chain = chain
        self._records = records
        self._beats = beats
        self._max_tries = max_tries
        self._visit_s = visit_s
        self._parents = parents
        self._quarantine = quarantine
        self._later = later
        self._chance = chance
        self._read = EndedTurnCache(chain)
        self._behind = BackgroundCallbacks()

    def run(self, session_id: str, turn_id: str, step_name: str, events: WorkEvents = UNWATCHED) -> str:
        """Answer one doorbell, and go on with the steps that follow while no other turn waits for this worker.

        Returns what was done with the doorbell's own step, in a word, for logs and tests; `events` gets the
        others. The first failure ends the visit.
        """
        owner = f"{next(self._numbers)}@{self._owner}"
        claim = self._read.claim(session_id, turn_id, step_name, owner, and_messages=step_name == FIRST_STEP)
        if isinstance(claim, NoClaim):
            if claim.why == "no_brain":
                self._left.warn("step", turn_id, self._brains.names)
            log.debug("doorbell dropped", turn_id=turn_id, step=step_name, why=claim.why)
            return f"dropped: {claim.why}"
        if claim.lost:
            COUNTERS.add(m.LAPSED, "finalizer_step")
        until = time.monotonic() + self._visit_s
        try:
            self._note_later(claim)
            did, following = self._answer(claim, until, events)
            while following is not None:
                self._note_later(following)
                following = self._follow(following, until, events)
        finally:
            if self._later is not None:
                self._later.leave(turn_id)
        return did

    def _note_later(self, claim: FinalStepClaim) -> None:
        if claim.sent and self._later is not None:
            self._later.enter(claim.turn_id)

    def _follow(
        self, claim: FinalStepClaim, until: float, events: WorkEvents, failure: Exception | None = None
    ) -> FinalStepClaim | None:
        """Run a step that no doorbell was rung for, where it has not failed before; the claim of the one after it."""
        began = time.monotonic()
        events.step_began(claim)
        did: str = WorkOutcome("failed", WorkFailure.STEP_FAILED)
        try:
            did, following = self._failed(claim, failure, until) if failure else self._answer(claim, until, events)
        finally:
            events.step_ended(claim, did, time.monotonic() - began)
        return following

    def _answer(self, claim: FinalStepClaim, until: float, events: WorkEvents) -> tuple[str, FinalStepClaim | None]:
        """Run a claimed step and settle it: what was done, and the claim of the next where this worker has it."""
        claim = with_earlier_tries(claim)
        if (step := self._work(claim).order.get(claim.step)) is None:
            log.warning("step is not known here", turn_id=claim.turn_id, step=claim.step)
            return self._go_on(claim, until)
        if claim.lost and (passed := self._let_others_ahead(claim, until)) is not None:
            return passed
        # Ahead of the chain's own step a result goes out by itself: nothing else ends with it.
        context = self._context(claim, None if claim.base else [])
        with self._beats.renew(lambda: self._chain.beat(claim), _ignore):
            try:
                if claim.tries > self._max_tries and claim.step not in NEVER_DEAD:
                    raise RuntimeError(f"its worker died, or was cut off, in each of {claim.tries - 1} tries")
                late = self._run_in_time(step, context)
            except Exception as failure:
                return self._failed(claim, failure, until)
            done, failed = self._join(context, until, events) if late is None else ("", None)
        if late is not None:
            return self._finish_in_background(step, claim, late)
        did, following = self._done(claim, until, context.outgoing or (), done)
        if following is not None and failed is not None:
            following = self._follow(following, until, events, failed)
        return did, following

    def _join(self, context: StepContext, until: float, events: WorkEvents) -> tuple[str, Exception | None]:
        """Do what follows of brainq's own under this claim, too, which is settled for all at once: the last that was
        done, and why the one behind it failed. That is claimed, and has failed then."""
        claim, done = context.claim, context.claim.step
        for step in self._work(claim).order.joined_to(context):
            began, joined = time.monotonic(), replace(claim, step=step.name, fence=claim.fence + 1)
            if began >= until:
                break
            try:
                self._run(step, replace(context, claim=joined))
            except Exception as failure:
                return done, failure
            events.step_began(joined)
            events.step_ended(joined, "next", time.monotonic() - began)
            done = step.name
        return done, None

    def _done(
        self, claim: FinalStepClaim, until: float, outgoing: Sequence[TurnResult] = (), done: str = ""
    ) -> tuple[str, FinalStepClaim | None]:
        if claim.tries > 1:
            self._note_done(claim)
        return self._go_on(claim, until, outgoing, done)

    def _let_others_ahead(self, claim: FinalStepClaim, until: float) -> tuple[str, FinalStepClaim | None] | None:
        """A worker died at this step: what does not need it goes first. None: nothing waits behind it."""
        past = StepHistory.read(claim.past)
        if not claim.base:
            ahead = self._work(claim).order.ahead_of(claim.step, past, untried=True)
            return self._go_ahead(claim, ahead, past, until, after_s=0.0, uncounted=True) if ahead else None
        if claim.lost == past.lost(claim.step):
            return None  # its death was counted before, and it goes again
        return self._failed(claim, RuntimeError("its worker died, or was cut off"), until)

    def _run_in_time(self, step: FinalStep, context: StepContext) -> ThreadCall[None] | None:
        """Run the step. A callback that the result waits for gets a second; None: it has ended, else it runs on. Raises
        what it raises in that time."""
        if not self._delays_result(step, context.claim):
            self._run(step, context)
            return None
        running = ThreadCall(f"step {step.name!r}", lambda: self._run(step, context, bounded=False))
        if not running.wait(RESULT_WAITS_S):
            return running
        running.result(RESULT_WAITS_S)
        return None

    def _delays_result(self, step: FinalStep, claim: FinalStepClaim) -> bool:
        """Whether the result, which is not out yet, comes after this step, which runs code of the brain's."""
        return (
            _limit_s(step) is not None and not claim.sent and RESULT in self._work(claim).order.steps_after(claim.step)
        )

    def _finish_in_background(
        self, step: FinalStep, claim: FinalStepClaim, running: ThreadCall[None]
    ) -> tuple[str, FinalStepClaim | None]:
        """The result goes first. The callback that it waited for ends behind it, and this worker is free meanwhile."""
        first = ResultFirst(claim.turn_id, lambda: self._send_ahead(claim), lambda why: self._give_up(claim, why))
        limit_s = (_limit_s(step) or LIMIT_S) + (PROCESS_START_S if self._needs_quarantine(claim) else 0.0)

        def end() -> str:
            with self._beats.renew(lambda: self._chain.beat(claim), _ignore):
                try:
                    first.wait(running, limit_s)
                    running.result(limit_s)
                except Exception as failure:
                    return self._failed(claim, failure, 0.0)[0]
            return self._done(claim, 0.0)[0]

        return "behind" if self._behind.start(end) else end(), None

    def _send_ahead(self, claim: FinalStepClaim) -> None:
        """Do the steps that lead to the result, and send it, while this one runs. The chain comes to them once more,
        and finds them done."""
        order = self._work(claim).order
        for name in order.steps_after(claim.step):
            step = order.get(name)
            assert step is not None
            self._run(step, self._context(replace(claim, step=name, tries=1, lost=0, replies=[], details=[])))
            if name == RESULT:
                return

    def run_claimed(self, claim: FinalStepClaim) -> None:
        """Run a step that somebody else has claimed, limits, and will settle. Raises what the step raises."""
        if (step := self._work(claim).order.get(claim.step)) is None:
            raise LookupError(f"step {claim.step!r} is not known here")
        with self._span(claim):
            step.run(self._context(claim))

    def _span(self, claim: FinalStepClaim) -> AbstractContextManager[object]:
        if tracer() is None:
            return INVALID_SPAN
        return in_span(final_span(claim, self._read.turn(claim).request), redact=self._work(claim).redacts)

    def _record_turn(self, claim: FinalStepClaim) -> None:
        try:
            record_turn(self._read.turn(claim), self._work(claim).brain.name)
        except Exception as failure:
            log.warning("turn not recorded in its trace", turn_id=claim.turn_id, why=type(failure).__name__)

    def _needs_quarantine(self, claim: FinalStepClaim) -> bool:
        return claim.lost >= MAX_LOST_WORKERS and self._quarantine is not None

    def _run(self, step: FinalStep, context: StepContext, *, bounded: bool = True) -> None:
        """`bounded`: by its limit; else the caller limits it."""
        limit_s = _limit_s(step)
        with self._span(context.claim), around_step(context):
            if context.claim.lost >= MAX_LOST_WORKERS and self._quarantine is not None:
                self._quarantine(context.claim, limit_s)
            elif limit_s is None or not bounded:
                step.run(context)
            else:
                call_within(limit_s, f"step {step.name!r}", lambda: step.run(context))

    def _work(self, claim: FinalStepClaim) -> FinalizerRuntime:
        return self._brains.of(claim.brain) or self._missing

    def _context(self, claim: FinalStepClaim, outgoing: list[TurnResult] | None = None) -> StepContext:
        read, brain = partial(self._read.turn, claim), self._work(claim).brain
        return StepContext(claim, read, self._chain, self._records, brain, self._parents, outgoing)

    def deliver(self, session_id: str, turn_id: str) -> str:
        """Send the result out though the chain has not come to it: its steps fail, or no worker runs them."""
        turn = self._chain.ended(session_id, turn_id)
        if turn is None:
            return "gone"
        why = turn.failing_error or self._unserved_reason(turn.request.brain)
        result = make_result(turn, warnings=early_result_warning(why))
        return self._chain.publish(result).lower()

    def _give_up(self, claim: FinalStepClaim, why: str) -> None:
        warning = f"sent before the finalizer was done: what comes after {claim.step} failed: {why}"
        self._chain.publish(make_result(self._read.turn(claim), warnings=(warning,)))

    def _unserved_reason(self, brain: str | None) -> str:
        reason = "no finalizer worker has taken it up"
        if self._brains.of(brain) is not None:
            return reason
        return f"{reason}; its brain {brain!r} is not among {', '.join(self._brains.names)}"

    def _failed(self, claim: FinalStepClaim, failure: Exception, until: float) -> tuple[str, FinalStepClaim | None]:
        error_type = error_type_name(failure)
        dead = claim.tries >= self._max_tries and claim.step not in NEVER_DEAD
        log.error("step failed", failure=failure, turn_id=claim.turn_id, step=claim.step, tries=claim.tries)
        error = error_type if self._work(claim).redacts else f"{error_type}: {failure_words(failure)}"[:2000]
        try:
            self._records.note_failure(claim, error, dead)
        except Exception as worse:
            # SQL itself is away, most likely. A step is given up only where people can see it: until then it is
            # tried again.
            dead = False
            log.warning("failure not recorded", turn_id=claim.turn_id, step=claim.step, why=type(worse).__name__)
        COUNTERS.add(m.STEP_FAILURES, claim.step, "dead" if dead else "again")
        outcome = WorkFailure.STEP_FAILED, error_type
        if dead:
            if claim.step in LATE_FAILURE_WARNINGS:
                self._chain.warn_later(claim.session_id, claim.turn_id, LATE_FAILURE_WARNINGS[claim.step], applies=True)
            did, following = self._go_on(claim, until)
            return WorkOutcome(did, *outcome), following
        did, following = self._wait(claim, f"{claim.step}: {error_type}", until)
        return WorkOutcome(did, *outcome), following

    def _wait(self, claim: FinalStepClaim, error: str, until: float) -> tuple[str, FinalStepClaim | None]:
        """A step has failed and is to be tried again: what does not need it goes ahead."""
        order, past = self._work(claim).order, StepHistory.read(claim.past)
        if claim.base:
            past = past.with_failed(claim.step, claim.tries, claim.lost)
            ahead = order.ahead_of(claim.base, past, claim.step)
            return "failed", self._go_ahead(claim, ahead, past, until)[1]
        after_s = RETRY.after_s(claim.tries, self._chance())
        if ahead := order.ahead_of(claim.step, past):
            return "failed", self._go_ahead(claim, ahead, past, until, after_s=after_s, error=error)[1]
        self._chain.retry(claim, after_s, error)
        return "failed", None

    def _go_ahead(
        self, claim: FinalStepClaim, ahead: str, past: StepHistory, until: float, **own: Any
    ) -> tuple[str, FinalStepClaim | None]:
        """`ahead` goes next; `own`: what becomes of the chain's own step, where that was claimed."""
        found = self._chain.go_ahead(claim, ahead, past.text, stay=time.monotonic() < until, **own)
        return ("next", found) if isinstance(found, FinalStepClaim) else (found.lower(), None)

    def _note_done(self, claim: FinalStepClaim) -> None:
        try:
            self._records.note_done(claim)
        except Exception as failure:
            # What people see of the step is behind by one try; the chain does not wait for that.
            log.warning("end not recorded", turn_id=claim.turn_id, step=claim.step, why=type(failure).__name__)

    def _go_on(
        self, claim: FinalStepClaim, until: float, outgoing: Sequence[TurnResult] = (), done: str = ""
    ) -> tuple[str, FinalStepClaim | None]:
        done = done or claim.step  # the last that was done under this claim
        did, following = self._settle(claim, until, outgoing, done)
        if done == RESULT and did != "lost" and tracer() is not None:
            self._record_turn(claim)
        return did, following

    def _settle(
        self, claim: FinalStepClaim, until: float, outgoing: Sequence[TurnResult], done: str
    ) -> tuple[str, FinalStepClaim | None]:
        order, past = self._work(claim).order, StepHistory.read(claim.past)
        if claim.base:
            past = past.with_done(claim.step)
            return self._go_ahead(claim, order.ahead_of(claim.base, past, claim.step), past, until)
        if not (next_step := order.next_step(done, past)):
            for result in outgoing:
                self._chain.publish(result)
            return self._read.finish(claim).lower(), None
        stay = time.monotonic() < until
        if outgoing:
            stay = stay and (self._later is None or self._later.try_enter(claim.turn_id))
            found = self._chain.send(claim, next_step, outgoing[0], stay=stay)
        else:
            found = self._chain.go_on(claim, next_step, stay=stay)
        return ("next", found) if isinstance(found, FinalStepClaim) else (found.lower(), None)


def _limit_s(step: FinalStep) -> float | None:
    return getattr(step, "limit_s", LIMIT_S)


def _ignore(word: str) -> None:
    """A step that lost its lease finishes; what it writes to SQL commits once all the same."""
