"""The coordinator. It claims a turn, decides what comes next, does that, and exits."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.claim import NoClaim, TurnClaim
from brainq.contracts.message import ToolCall
from brainq.contracts.rate import QueueTicket
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.stop import Stop, stop_of_turn, stops_of_models
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import ByBrain
from brainq.engine.brain.middleware import MiddlewareFailed, notify_hooks, notify_hooks_in_time
from brainq.engine.models.asking.deferred import CallDeferred, Requester, StopDeferred
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.turn.before_step import AuxiliaryWork
from brainq.engine.turn.client_tools import turn_specs
from brainq.engine.turn.decide import NOTHING_TO_COMPACT, Compact, End, Reflect, Think, Wait, decide, turn_facts
from brainq.engine.turn.ending import Ender
from brainq.engine.turn.explain import waits_for_build
from brainq.engine.turn.owned_turn import LOST, Did, LoopEnd, Lost, Outcome, OwnedTurn, Waits
from brainq.engine.turn.reflection import ThinkingManager
from brainq.engine.turn.step import StepPipeline, middleware_end
from brainq.engine.visit import Visit
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe.logs import MissingBrainLog, logger, missing_brain_error
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import COUNTERS
from brainq.runtime.observe.spans import advance_span
from brainq.runtime.observe.tracebacks import where_raised
from brainq.runtime.observe.tracing import in_span, tracer
from brainq.runtime.outage import NO_WAITING, OutagePolicy
from brainq.runtime.processes.resources import is_short_now
from brainq.runtime.text.failures import failure_name

if TYPE_CHECKING:
    from brainq.adapters.redis.listener import RedisStopSignals
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.engine.people.brakes import BrakeDesk

log = logger("brainq.turn")
CONTINUING_RANK = 0
BEGIN_RANKS = {"high": 1, "normal": 2, "low": 3}
MAX_PERMIT_WAIT_MS = 86_400_000  # a turn that has been active for this long no longer waits for a permit
RECHECK_S = 60.0  # a longer wait is checked half way, because the permit may come sooner
RING_EARLY_S = 1.0  # how long before its permit a turn gets its doorbell; the rest of the wait is slept
ANY_LOSSES = 1_000_000  # passed to a claim that ignores how often the turn has lost its worker


@dataclass(frozen=True, slots=True)
class CoordinatorRuntime:
    """The machines that work for one brain."""

    brain: Brain
    step_pipeline: StepPipeline
    auxiliary: AuxiliaryWork
    thinking: ThinkingManager


def fault_end(failure: Exception) -> End:
    """Return the end of a turn whose coordinator raised an exception. The error names the exception's type and place,
    but not its text, which may be content."""
    if isinstance(failure, MiddlewareFailed):
        return middleware_end(failure)
    place = where_raised(failure)
    return End(
        Ending.FAILED,
        StopReason.INTERNAL_ERROR,
        "the coordinator failed",
        f"the coordinator raised {failure_name(failure)}" + (f" at {place}" if place else ""),
    )


def requester_of(view: TurnView) -> Requester:
    """Return the rank of a turn among those that wait for permits, and how long it may wait.

    A turn that has begun, or that another turn waits for, comes before turns that have not begun. Otherwise new turns
    would take all permits, and none would finish. The deadline does not run while a turn waits. A turn that has made no
    step may wait for its `max_wait_s`.
    """
    request = view.request
    goes_on = view.step > 0 or view.compaction_tried_at > 0 or request.parent is not None
    rank = CONTINUING_RANK if goes_on else BEGIN_RANKS[request.priority]
    since_ms, most_ms = (
        (view.active_at_ms, MAX_PERMIT_WAIT_MS)
        if view.max_wait_ms is None or view.step > 0
        else (view.created_at_ms, view.max_wait_ms)
    )
    may_wait_s = max(0.0, (since_ms + most_ms - view.now_ms) / 1000)
    return Requester(rank, may_wait_s, has_begun=view.step > 0)


def call_due_hooks(brain: Brain, turns: RedisTurns, turn: OwnedTurn) -> None:
    """Call `on_post_tool_use` for calls that did not end in a worker: results from outside or of child turns, rescued
    calls, and waits that timed out. If the owner dies before this is recorded, the next owner calls the hooks. An error
    of a hook changes nothing."""
    claim, view, hooks = turn.claim, turn.view, brain.hooks.after_call
    if not hooks or not view.hooks_due:
        return
    specs = turn_specs(brain, view.request)
    # The sweeper may be the one that ends this turn, and a hook that hangs would then delay all other turns.
    notify = notify_hooks_in_time if view.cancel or view.remaining_ms <= 0 else notify_hooks
    for due in turn.retry(partial(turns.due_hooks, claim, view.hooks_due)):
        spec = specs.get(due.tool)
        if spec is None:
            continue  # the brain no longer has the tool
        call = ToolCall(id=due.call_id, name=due.tool, arguments=dict(due.arguments))
        notify(hooks, claim.turn_id, PostToolUse(claim.turn_id, claim.session_id, call, spec, due.outcome))
    turn.retry(partial(turns.hooks_done, claim, view.hooks_due))


@dataclass(slots=True)
class Ownership:
    """Whether this process still owns the turn, according to the latest heartbeat. `word` is "" while it does."""

    word: str = ""

    def is_lost(self) -> bool:
        return bool(self.word)

    def lose(self, word: str) -> None:
        self.word = word


@dataclass(kw_only=True, eq=False)
class Coordinator:
    """The machine that advances turns. It keeps no state, so any process may advance any turn.

    quarantine       advances a turn that repeatedly lost its worker, in a process of its own. It is None in that
                     process
    permits          how model calls take permits of rate-limited services
    outages          how an advance waits while Redis or SQL is unavailable
    is_unavailable   returns whether an exception means that a server cannot be reached
    """

    owner: str
    brains: ByBrain[CoordinatorRuntime]
    turns: RedisTurns
    beats: LeaseRenewer
    stops: RedisStopSignals
    ender: Ender
    brakes: BrakeDesk
    is_unavailable: Callable[[Exception], bool]
    permits: PermitPolicy
    quarantine: Callable[[str, str, int], str] | None = None
    outages: OutagePolicy = NO_WAITING
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), init=False)
    _missing: MissingBrainLog = field(default_factory=MissingBrainLog, init=False)

    def advance(self, session_id: str, turn_id: str, fence: int, visit: Visit | None = None) -> str:
        """Handle one doorbell. Returns the outcome as a word, for logs and tests."""
        # Each claim has its own owner name. After Redis has lost data, fences start again, and an older thread of this
        # process must not be taken for the new owner.
        owner = f"{next(self._numbers)}@{self.owner}"
        ownership = Ownership()
        # The watch begins before the claim, so that a cancel between the two is not missed.
        turn = (session_id, turn_id, ownership.lose)
        with self.stops.watch(*turn) if visit is None else visit.watch(self.stops, *turn):
            return self._claim_and_advance(session_id, turn_id, fence, owner, ownership, visit)

    def advance_claimed(self, claim: TurnClaim, visit: Visit) -> str:
        """Advance a turn that the work before it opened and claimed for this thread. Returns the outcome as a word."""
        ownership = Ownership()
        with visit.watch(self.stops, claim.session_id, claim.turn_id, ownership.lose):
            return self._advance_owned(claim, ownership, visit)

    def _claim_and_advance(
        self, session_id: str, turn_id: str, fence: int, owner: str, ownership: Ownership, visit: Visit | None
    ) -> str:
        if self.quarantine is None:
            claim = self.turns.claim(session_id, turn_id, fence, owner, ANY_LOSSES)
        else:
            claim = self.turns.claim(session_id, turn_id, fence, owner)
            if isinstance(claim, NoClaim) and claim.why == "suspect":
                return self.quarantine(session_id, turn_id, fence)
        if isinstance(claim, NoClaim):
            if claim.why == "no_brain":
                self._missing.warn("turn", turn_id, self.brains.names)
            log.debug("doorbell dropped", turn_id=turn_id, why=claim.why)
            return f"dropped: {claim.why}"
        if claim.lost:
            COUNTERS.add(m.LAPSED, "turn")
        if visit is not None:
            visit.begin(claim)
        return self._advance_owned(claim, ownership, visit)

    def _advance_owned(self, claim: TurnClaim, ownership: Ownership, visit: Visit | None) -> str:
        outcome = LOST
        try:
            with self.beats.renew(lambda: self.turns.beat(claim), ownership.lose):
                outcome = self._advance_claim(claim, ownership, visit)
                return outcome.word
        finally:
            if isinstance(outcome, Lost):
                log.info("turn lost", turn_id=claim.turn_id)
                # This process is alive. It keeps trying to release the turn until Redis answers, so that the turn is
                # not blamed for the death of a worker.
                self.beats.renew(lambda: self.turns.release(claim), _ignore_beat)

    def _advance_claim(self, claim: TurnClaim, ownership: Ownership, visit: Visit | None) -> Outcome:
        view = self.turns.look(claim)
        work = None if claim.only_ends else self.brains.of(view.request.brain)
        turn = OwnedTurn(claim, view, ownership.is_lost, self.outages.for_turn(view), visit)
        if work is None:
            outcome = self._end_unserved(turn)
        else:
            view.request = work.brain.complete(view.request)
            parked = self.turns.parked_calls(claim, view.step) if view.parked_ms and tracer() is not None else ()
            with in_span(advance_span(claim, view, parked), redact=work.brain.redact_logs) as span:
                outcome = self._act_with_permits(work, turn)
                span.set_attribute(names.DID, outcome.word)
        if view.queue_ticket is not None and isinstance(outcome, Did):
            self._leave_queue(view, view.queue_ticket)
        return outcome

    def _leave_queue(self, view: TurnView, ticket: QueueTicket) -> None:
        """Give up the turn's place in a permit queue, if the turn has used the place, has ended, or got its reply from
        another model."""
        if ticket.step > view.step or view.step == 0:
            try:
                self.permits.limits.leave(ticket)
            except Exception as failure:  # the ticket is dropped when it is first and its place is not claimed
                log.warning("queue not left", turn_id=view.request.turn_id, why=type(failure).__name__)

    def _act_with_permits(self, work: CoordinatorRuntime, turn: OwnedTurn) -> Outcome:
        try:
            stops = turn.claim.stops and stops_of_models(turn.claim.stops, turn.claim.session_id)
            with replace(self.permits, requester=requester_of(turn.view), stops=stops).activate():
                return self._act(work, turn)
        except CallDeferred as later:
            return self._defer(turn, later)
        except Exception as failure:
            if self.is_unavailable(failure) or is_short_now(failure):
                raise  # the turn gets another doorbell, and the problem may be solved by then
            # Another worker would read the same state and raise the same exception.
            log.error("turn failed in the coordinator", failure=failure, turn_id=turn.claim.turn_id)
            return self.ender.end(turn, fault_end(failure))

    def _defer(self, turn: OwnedTurn, later: CallDeferred) -> Outcome:
        """Release the turn until shortly before its permit is due, so that no thread waits. A long wait is checked half
        way, because turns ahead of it may have left the queue."""
        wait_s = later.wait_s if later.wait_s <= RECHECK_S else max(RECHECK_S, later.wait_s / 2)
        ring_s = max(0.0, wait_s - RING_EARLY_S)
        let_wait = partial(
            self.turns.wait_for_permit,
            turn.claim,
            ring_s,
            later.wait_s,
            later.why,
            later.ticket,
            later.spends,
            later.stop,
        )
        return Waits(later.why) if turn.retry(let_wait) == "WAITS" else LOST

    def _meet_stop(self, turn: OwnedTurn, stop: Stop) -> Outcome:
        """End a turn whose brain or tenant operators have forbidden, or make the turn wait if they have paused it."""
        if stop.mode == "forbid":
            why = "operators have forbidden its brain or tenant"
            return self.ender.end(turn, End(Ending.CANCELLED, StopReason.CANCELLED, why, stop.describe()))
        requester = requester_of(turn.view)
        if not requester.may_wait:
            why = "what it needs was paused for longer than it may wait"
            return self.ender.end(turn, End(Ending.TIMED_OUT, StopReason.WAITED, why, stop.describe()))
        return self._defer(turn, StopDeferred(stop, requester))

    def _end_unserved(self, turn: OwnedTurn) -> Outcome:
        """End a turn whose brain this process does not have. Such a turn is claimed here only if it was cancelled, or
        if no worker with the brain took it before its deadline."""
        decision = decide(turn_facts(turn.view))
        if not isinstance(decision, End) or decision.ending is Ending.FAILED:
            return LOST  # a worker that has its brain continues it
        if decision.stop_reason is StopReason.DEADLINE:
            build = self.turns.pinned_to(turn.claim.session_id, turn.claim.turn_id)
            missing = missing_brain_error(turn.view.request.brain, self.brains.names)
            decision = replace(decision, error=waits_for_build(build) if build else missing)
        return self.ender.end(turn, decision)

    def _act(self, work: CoordinatorRuntime, turn: OwnedTurn) -> Outcome:
        claim, view = turn.claim, turn.view
        if view.flag and not view.begun:
            turn.retry(lambda: self.brakes.record_taken(claim.session_id, view.flag, claim.turn_id))
        if view.hooks_due:
            call_due_hooks(work.brain, self.turns, turn)
        facts = turn_facts(view)
        decision = decide(facts, work.thinking)
        if claim.stops and not isinstance(decision, End | Wait):
            stop = stop_of_turn(claim.stops, claim.session_id, work.brain.name)
            if stop is not None:
                return self._meet_stop(turn, stop)
        if isinstance(decision, Reflect):
            outcome = work.auxiliary.reflect(turn)
            if outcome is not None:
                return outcome
            # No reflection can be made now, so the step follows.
            decision = decide(replace(facts, reflected_step=facts.step), work.thinking)
        match decision:
            case Reflect():
                raise AssertionError("a step is reflected on once")
            case Think():
                outcome = work.step_pipeline.run(turn)
                return self.ender.end(turn, outcome.end, outcome) if isinstance(outcome, LoopEnd) else outcome
            case Compact():
                return work.auxiliary.compact_now(turn) or self.ender.end(turn, NOTHING_TO_COMPACT)
            case End():
                return self.ender.end(turn, decision)
            case Wait():
                return Did(f"waits: {decision.why}")


def _ignore_beat(word: str) -> None:
    """Do nothing: the turn was released, or has another owner."""
