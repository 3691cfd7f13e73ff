"""The runner of calls in a worker. It claims a call, records its intent, runs its function within its time limit, and
settles the result."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from opentelemetry.trace import INVALID_SPAN

from brainq.contracts.call import Progress, ToolFailure, ToolTimeout, new_outside_token
from brainq.contracts.claim import CallClaim, CallRef, NoClaim
from brainq.contracts.memory import MemoryRetriever, RetrievedMemory
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import ByBrain
from brainq.engine.brain.middleware import CallStart, MiddlewareFailed, run_hooks
from brainq.engine.calls.executor import TOOL_LOOP, BoundedToolExecutor
from brainq.engine.calls.function_run import Abandon, OnCut, run_in_own_thread
from brainq.engine.calls.intents import IntentGate
from brainq.engine.calls.parking import Parker
from brainq.engine.calls.report import make_report
from brainq.engine.calls.server_tasks import ServerTaskWatcher
from brainq.engine.calls.settle import CallSettler, ClaimedCall, ResultFiles, settled_as
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.context_pack import MEMORY_TOOL
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.mcp.session import close_sessions
from brainq.engine.tools.tool import Tool, make_tool
from brainq.engine.visit import Visit
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.observe import telemetry_names as names
from brainq.runtime.observe import tracing
from brainq.runtime.observe.logs import MissingBrainLog, logger
from brainq.runtime.observe.spans import call_span

if TYPE_CHECKING:
    from brainq.adapters.redis.calls import RedisCalls
    from brainq.adapters.redis.listener import RedisStopSignals
    from brainq.adapters.redis.outside import RedisOutsideResults
    from brainq.adapters.redis.people import RedisHolds
    from brainq.adapters.sql.repositories.calls import Calls
    from brainq.engine.people.brakes import BrakeDesk
    from brainq.engine.people.children import ChildDesk

log = logger("brainq.calls")
NOT_STARTED = "not started"
MAX_LOST_WORKERS = 2  # a call that has lost this many workers runs in a process of its own


def memory_tool(retriever: MemoryRetriever) -> Tool:
    """Return a READ_ONLY tool named MEMORY_TOOL that calls the retriever. A memory lookup is thereby time-limited,
    renewed and rescued like any other read. The model does not see this tool."""

    def retrieve(query: str, context: RunContext) -> dict[str, Any]:
        found: Any = retriever.retrieve_for_context(query, context.session_id)
        if not isinstance(found, RetrievedMemory):
            raise TypeError(
                f"retrieve_for_context of {type(retriever).__name__} returned a {type(found).__name__}; "
                "it must return a RetrievedMemory"
            )
        return found.model_dump(mode="json")

    return make_tool(retrieve, effect=Effect.READ_ONLY, name=MEMORY_TOOL, description="Find what is known of the user.")


@dataclass(eq=False, slots=True)
class CallBeat:
    """The heartbeat of a call. It renews the lease and publishes the newest progress.

    progress   returns the newest progress that the function has reported, or None
    """

    calls: RedisCalls
    claim: CallClaim
    progress: Callable[[], Progress | None] = lambda: None
    _newest: Progress | None = None
    _number: int = 0
    _is_published: bool = True

    def beat(self) -> str:
        word = self.calls.beat(self.claim)
        if word == "OK":
            self._publish_progress(self.progress())
        return word

    def _publish_progress(self, newest: Progress | None) -> None:
        if self._is_published and newest is not self._newest:
            self._newest, self._number, self._is_published = newest, self._number + 1, False
        if not self._is_published and self._newest is not None:
            # Redis may have received it before the error, so it is published again with the same number.
            self.calls.publish_progress(self.claim, self._number, self._newest)
            self._is_published = True


@dataclass(kw_only=True, eq=False)
class CallRunner:
    """The machine that runs calls in a worker of the parallel or the serial pool.

    retriever   returns the memory retriever of a brain, or None
    stops       reports a cancel to a running call at once; without it, the next heartbeat does
    holds       reports to tools whether their turn is ready
    outside     keeps the tokens that tools make themselves
    children    starts child turns
    brakes      restores the holds that Redis has lost
    files       stores the files of results
    watch       polls servers for the tasks that calls wait for
    """

    owner: str
    brains: ByBrain[Brain]
    calls: RedisCalls
    intents: Calls
    beats: LeaseRenewer
    executor: BoundedToolExecutor
    files: ResultFiles
    retriever: Callable[[Brain], MemoryRetriever | None] = lambda brain: None
    stops: RedisStopSignals | None = None
    holds: RedisHolds | None = None
    outside: RedisOutsideResults | None = None
    children: ChildDesk | None = None
    brakes: BrakeDesk | None = None
    watch: ServerTaskWatcher | None = None
    _missing: MissingBrainLog = field(default_factory=MissingBrainLog, init=False)
    # Each claim has its own owner name, for the reason given in engine/turn/coordinator.py.
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1), init=False)

    def __post_init__(self) -> None:
        self._memory_tools = self.brains.each(self._memory_tool)
        self._intents = IntentGate(self.calls, self.intents, self.brakes)
        parker = Parker(self.calls, self.outside, self.children, self.watch)
        self._settler = CallSettler(self.calls, self._intents, parker, self.files, self.beats)
        if self.watch is not None:
            self.watch.begin()

    def _memory_tool(self, brain: Brain) -> Tool | None:
        retriever = self.retriever(brain)
        return None if retriever is None else memory_tool(retriever)

    def close(self) -> None:
        """Stop what the process keeps for its tools: threads, child processes, MCP servers, the event loop."""
        if self.watch is not None:
            self.watch.close()
        self.executor.close()
        close_sessions()
        TOOL_LOOP.stop()

    def run(
        self,
        session_id: str,
        turn_id: str,
        call_id: str,
        attempt: int,
        abandon: Abandon | None = None,
        visit: Visit | None = None,
    ) -> str:
        """Handle one doorbell. Returns the outcome as a word, for logs and tests.

        abandon   answers the doorbell if the function keeps this thread after its deadline. If `abandon` is None, this
                  thread cannot be abandoned, and the call runs in a thread of its own
        """
        if abandon is None:
            return run_in_own_thread(partial(self.run, session_id, turn_id, call_id, attempt, visit=visit))
        with ExitStack() as held:
            token, ref = self._watch(held, session_id, turn_id, visit), CallRef(session_id, turn_id, call_id)
            claim = self.calls.claim(ref, attempt, f"{next(self._numbers)}@{self.owner}")
            if isinstance(claim, NoClaim):
                return self._drop(ref, claim.why)
            if visit is not None:
                visit.begin(claim)
            return self._run_claimed(claim, token, held, abandon, visit)

    def run_claimed(self, claim: CallClaim, abandon: Abandon | None, visit: Visit) -> str:
        """Run a call that the work before it opened and claimed for this thread. Returns what `run` does."""
        if abandon is None:
            return run_in_own_thread(partial(self.run_claimed, claim, visit=visit))
        with ExitStack() as held:
            token = self._watch(held, claim.session_id, claim.turn_id, visit)
            return self._run_claimed(claim, token, held, abandon, visit)

    def _watch(self, held: ExitStack, session_id: str, turn_id: str, visit: Visit | None) -> DeadlineToken:
        """Return the token that a stop of the turn cancels, from before the claim on, so that none is missed."""
        token = DeadlineToken(math.inf)
        if self.stops is not None:
            stops = (session_id, turn_id, token.cancel)
            held.enter_context(self.stops.watch(*stops) if visit is None else visit.watch(self.stops, *stops))
        return token

    def _run_claimed(
        self, claim: CallClaim, token: DeadlineToken, held: ExitStack, abandon: Abandon, visit: Visit | None
    ) -> str:
        brain = self.brains.of(claim.brain)
        assert brain is not None  # the claim returns only calls of these brains
        is_memory = claim.tool == MEMORY_TOOL and claim.step == 0
        tool = self._memory_tools.of(claim.brain) if is_memory else brain.tools.get(claim.tool)
        if tool is None:
            return self._not_loaded(claim)
        token.ends_at = time.monotonic() + min(claim.cap_ms, claim.remaining_ms) / 1000
        beat = CallBeat(self.calls, claim)
        held.push(self.beats.renew(beat.beat, token.cancel))
        # This call may be the reason why the workers that ran it before have died.
        runs_alone = claim.attempt > MAX_LOST_WORKERS and not is_memory
        # Everything that needs Redis comes before the intent, because nothing may fail between the intent and the
        # function.
        context = self._context(claim, tool, token, brain.name, runs_alone=runs_alone)
        beat.progress = lambda: context.newest_progress
        call = ClaimedCall(claim, tool, brain, context, visit)
        span = call_span(claim, brain.name, redact=brain.redact_logs) if tracing.recorder else INVALID_SPAN
        with span as call.span:
            return self._intend_and_run(call, partial(self._cut_off, call, held, abandon), runs_alone=runs_alone)

    def _intend_and_run(self, call: ClaimedCall, on_cut: OnCut, *, runs_alone: bool) -> str:
        claim, hooks = call.claim, call.brain.hooks.before_call
        if hooks and claim.step > 0 and (failed := _run_hooks(call)) is not None:
            return self._settler.settle(call, failed)
        if not claim.effect.is_read:
            word = self._intents.start(claim, redact=call.brain.redact_logs)
            if word != "started":
                if word == "closed":
                    self._settler.settle_unstarted(call)
                call.span.set_attribute(names.DID, NOT_STARTED)
                return NOT_STARTED
        ended = self.executor.run(
            call.tool,
            claim.arguments,
            call.context,
            in_child=runs_alone,
            on_cut=on_cut,
            on_late=partial(self._settler.settle_late, call),
        )
        return call.did if ended is None else self._settler.settle(call, ended)

    def _cut_off(self, call: ClaimedCall, held: ExitStack, abandon: Abandon, timeout: ToolTimeout) -> None:
        """Settle a call whose function is past its time but still occupies its thread. This runs in another thread."""
        with held:
            abandon(partial(self._settler.settle, call, timeout))

    def _drop(self, ref: CallRef, why: str) -> str:
        # `unserved` means that another pool serves the effect: the doorbell was forged, or is in the wrong queue.
        log_dropped = log.warning if why == "unserved" else log.debug
        if why == "no_brain":
            self._missing.warn("call", ref.turn_id, self.brains.names)
        log_dropped("doorbell dropped", turn_id=ref.turn_id, call_id=ref.call_id, why=why)
        return f"dropped: {why}"

    def _not_loaded(self, claim: CallClaim) -> str:
        outcome = ToolFailure(
            error=f"tool {claim.tool!r} is not loaded by this worker; all workers must load the same brain",
            error_type="ToolNotLoaded",
        )
        report = make_report(claim, outcome)
        self.calls.settle(claim, report)
        return settled_as("not loaded", report)

    def _context(
        self, claim: CallClaim, tool: Tool, token: DeadlineToken, brain: str, *, runs_alone: bool
    ) -> RunContext:
        session_id, turn_id = claim.session_id, claim.turn_id
        # A child process cannot register a token itself, so the token is made here.
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


def _run_hooks(call: ClaimedCall) -> ToolFailure | None:
    """Run the hooks before the intent, so that a call that a middleware stops has not started."""
    claim = call.claim
    start = CallStart(
        claim.turn_id, claim.session_id, call.made_by_model, call.tool.spec, claim.attempt, claim.metadata
    )
    try:
        run_hooks(call.brain.hooks.before_call, claim.turn_id, start)
    except MiddlewareFailed as failure:
        return ToolFailure(error=f"not run: {failure}", error_type=type(failure).__name__)
    return None
