"""CallRunner.run: claim a call, start it, run it within its bounds, settle it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from brainq.brain.brain import Brain
from brainq.brain.brains import ByBrain
from brainq.brain.middleware import CallStart, Hook, MiddlewareFailed, run_hooks
from brainq.calls.attempt import Abandon, run_in_own_thread
from brainq.calls.executor import TOOL_LOOP, BoundedToolExecutor
from brainq.calls.parking import Parker
from brainq.calls.report import make_report, never_started_report
from brainq.calls.server_tasks import ServerTaskWatcher
from brainq.calls.settle import CallRuntime, IntentGate, ResultFiles, RunningCall, model_call, settled_as
from brainq.contracts.call import Progress, ToolFailure, new_outside_token
from brainq.contracts.claim import CallClaim, CallRef, NoClaim
from brainq.contracts.memory import MemoryRetriever, RetrievedMemory
from brainq.contracts.status import Effect
from brainq.leases import LeaseRenewer
from brainq.observe import telemetry_names as names
from brainq.observe.logs import MissingBrainLog, logger
from brainq.observe.spans import call_span, end_call
from brainq.observe.tracing import in_span
from brainq.ports.people import Brakes, ChildTurns
from brainq.ports.redis_calls import Calls, Holds, OutsideResults, StopSignals
from brainq.ports.sql import CallRows
from brainq.tools.context import RunContext
from brainq.tools.context_pack import MEMORY_TOOL
from brainq.tools.deadline import DeadlineToken
from brainq.tools.mcp.session import close_sessions
from brainq.tools.tool import Tool, make_tool

# The retriever as a tool, so that finding memory runs like any other read: bounded, beaten for, rescued.


def memory_tool(retriever: MemoryRetriever) -> Tool:
    """A READ_ONLY tool named MEMORY_TOOL; no model sees it."""

    def retrieve(query: str, context: RunContext) -> dict[str, Any]:
        found: Any = retriever.retrieve_for_context(query, context.session_id)
        if not isinstance(found, RetrievedMemory):
            raise TypeError(
                f"retrieve_for_context of {type(retriever).__name__} returned a {type(found).__name__}; "
                "it must return a RetrievedMemory"
            )
        return found.model_dump(mode="json")

    return make_tool(retrieve, effect=Effect.READ_ONLY, name=MEMORY_TOOL, description="Find what is known of the user.")


# A call's beat: it renews the lease, and tells readers how far the call is.


@dataclass(eq=False, slots=True)
class CallBeat:
    """progress   gives the newest that the function reported, or None"""

    calls: Calls
    claim: CallClaim
    progress: Callable[[], Progress | None] = lambda: None
    _telling: Progress | None = None
    _number: int = 0
    _is_told: bool = True

    def beat(self) -> str:
        word = self.calls.beat(self.claim)
        if word == "OK":
            self._publish_progress(self.progress())
        return word

    def _publish_progress(self, newest: Progress | None) -> None:
        if self._is_told and newest is not self._telling:
            self._telling, self._number, self._is_told = newest, self._number + 1, False
        if not self._is_told and self._telling is not None:
            # What Redis may have received is published again under the same number.
            self.calls.publish_progress(self.claim, self._number, self._telling)
            self._is_told = True


# CallRunner.run: claim a call, start it, run it within its bounds, record how it ended.

log = logger("brainq.calls")

NOT_STARTED = "not started"

MAX_LOST_WORKERS = 2  # a call that lost so many workers runs in a process where nothing else does


@dataclass(kw_only=True, eq=False)
class CallRunner:
    """Runs calls in a worker of the parallel or the serial pool.

    retriever  of the brain's memory
    stops      tells of a cancel at once; without it a call learns of one from its next beat
    holds      lets tools wait until their turn is ready
    outside    keeps tokens of the tools' own making
    children   starts child turns
    brakes     puts back the holds that Redis has lost
    files      keeps what tools return beside a value
    watch      asks servers for the tasks that calls wait for
    """

    owner: str
    brains: ByBrain[Brain]
    calls: Calls
    intents: CallRows
    beats: LeaseRenewer
    executor: BoundedToolExecutor
    files: ResultFiles
    retriever: Callable[[Brain], MemoryRetriever | None] = lambda brain: None
    stops: StopSignals | None = None
    holds: Holds | None = None
    outside: OutsideResults | None = None
    children: ChildTurns | None = None
    brakes: Brakes | None = None
    watch: ServerTaskWatcher | None = None
    _missing: MissingBrainLog = field(default_factory=MissingBrainLog, init=False)
    # Each claim signs as an owner of its own, as in turn/coordinator.py.
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), init=False)

    def __post_init__(self) -> None:
        self._runtimes = self.brains.each(self._make_runtime)
        if self.watch is not None:
            self.watch.begin()

    def _make_runtime(self, brain: Brain) -> CallRuntime:
        parker = Parker(self.calls, self.outside, self.children, self.watch)
        intents, retriever = IntentGate(brain, self.calls, self.intents, self.brakes), self.retriever(brain)
        memory = None if retriever is None else memory_tool(retriever)
        return CallRuntime(brain, self.calls, intents, parker, self.files, memory)

    def close(self) -> None:
        """End what the process keeps for its tools: threads, child processes, MCP servers, the event loop."""
        if self.watch is not None:
            self.watch.close()
        self.executor.close()
        close_sessions()
        TOOL_LOOP.stop()

    def run(self, session_id: str, turn_id: str, call_id: str, attempt: int, abandon: Abandon | None = None) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests.

        abandon   answers it instead where the call's function keeps this thread. None: the thread cannot be abandoned,
                  and the call gets one of its own
        """
        if abandon is None:
            return run_in_own_thread(partial(self.run, session_id, turn_id, call_id, attempt))
        # Before the claim, so that no stop falls between the claim's look at the turn and our listening.
        token = DeadlineToken(math.inf)
        with ExitStack() as held:
            if self.stops is not None:
                held.enter_context(self.stops.watch(session_id, turn_id, token.cancel))
            ref = CallRef(session_id, turn_id, call_id)
            claim = self.calls.claim(ref, attempt, f"{next(self._numbers)}@{self.owner}")
            if isinstance(claim, NoClaim):
                # Another pool serves the call's effect: the doorbell was forged, or put into a wrong queue.
                tell = log.warning if claim.why == "unserved" else log.debug
                if claim.why == "no_brain":
                    self._missing.warn("call", turn_id, self.brains.names)
                tell("doorbell dropped", turn_id=turn_id, call_id=call_id, why=claim.why)
                return f"dropped: {claim.why}"
            work = self._runtimes.of(claim.brain)
            assert work is not None  # the claim says no other brain's
            is_memory = claim.tool == MEMORY_TOOL and claim.step == 0
            tool = work.memory if is_memory else work.brain.tools.get(claim.tool)
            if tool is None:
                return self._not_loaded(claim, work)
            token.end_within(min(claim.cap_ms, claim.remaining_ms) / 1000)
            beat = CallBeat(self.calls, claim)
            held.push(self.beats.renew(beat.beat, token.cancel))
            # The workers that ran it before are gone, and this call may be what killed them.
            runs_alone = claim.attempt > MAX_LOST_WORKERS and not is_memory
            # What needs Redis comes before the intent: between that and the function nothing may fail.
            context = self._context(claim, tool, token, work.brain.name, runs_alone=runs_alone)
            beat.progress = lambda: context.newest_progress
            call = RunningCall(claim, tool, context, work, self.beats, self.calls, held, abandon)
            return self._start(call, runs_alone=runs_alone)

    def _start(self, call: RunningCall, *, runs_alone: bool) -> str:
        claim, work, redact = call.claim, call.work, call.work.brain.redact_logs
        with in_span(call_span(claim, work.brain.name, content=not redact), redact=redact) as call.span:
            hooks = work.brain.hooks.before_call
            if hooks and claim.step > 0 and (failed := self._run_hooks(hooks, call)) is not None:
                return call.settle(failed)
            if not claim.effect.is_read and (word := work.intents.start(claim)) != "started":
                if word == "closed":  # a turn that is being cancelled waits for its calls: this one is over
                    report = never_started_report(claim)
                    end_call(call.span, report.status)
                    work.settle(claim, report)
                call.span.set_attribute(names.DID, NOT_STARTED)
                return NOT_STARTED
            ended = self.executor.run(
                call.tool,
                claim.arguments,
                call.context,
                in_child=runs_alone,
                on_cut=call.cut_off,
                on_late=call.end_late,
            )
            return call.did if ended is None else call.settle(ended)

    def _run_hooks(self, hooks: tuple[Hook, ...], call: RunningCall) -> ToolFailure | None:
        """Before the intent: what a middleware stops has not started."""
        claim = call.claim
        start = CallStart(
            claim.turn_id, claim.session_id, model_call(claim), call.tool.spec, claim.attempt, claim.metadata
        )
        try:
            run_hooks(hooks, claim.turn_id, start)
        except MiddlewareFailed as failure:
            return ToolFailure(error=f"not run: {failure}", error_type=type(failure).__name__)
        return None

    def _not_loaded(self, claim: CallClaim, work: CallRuntime) -> str:
        outcome = ToolFailure(
            error=f"tool {claim.tool!r} is not loaded by this worker; all workers must load the same brain",
            error_type="ToolNotLoaded",
        )
        report = make_report(claim, outcome)
        work.settle(claim, report)
        return settled_as("not loaded", report)

    def _context(
        self, claim: CallClaim, tool: Tool, token: DeadlineToken, brain: str, *, runs_alone: bool
    ) -> RunContext:
        session_id, turn_id = claim.session_id, claim.turn_id
        # A child process cannot note a token itself.
        is_apart = tool.context_param and (tool.spec.isolation == "process" or runs_alone)
        new_token = new_outside_token(claim.ref) if is_apart else ""
        return RunContext(
            session_id=session_id,
            turn_id=turn_id,
            call_id=claim.call_id,
            token=token,
            step=claim.step,
            attempt=claim.attempt,
            budget=self.calls.budget(claim) if tool.context_param else None,
            cwd=claim.cwd,
            metadata=claim.metadata,
            brain=brain,
            is_ready=partial(self.holds.is_ready, session_id, turn_id) if self.holds is not None else None,
            outside_token=self.calls.give_token(claim, new_token) if is_apart else "",
            give_token=partial(self.calls.give_token, claim),
        )
