"""CallRunner.run: claim a call, start it, run it within its bounds, record how it ended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.by_brain import ByBrain
from brainq.calls.brain_calls import BrainCalls
from brainq.calls.call_beat import CallBeat
from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.files import ResultFiles
from brainq.calls.loop import stop_tool_loop
from brainq.calls.memory import memory_tool
from brainq.calls.own_thread import Abandon, in_own_thread
from brainq.calls.parking import Parker
from brainq.calls.report import NEVER_STARTED, never_started, report_of
from brainq.calls.running import RunningCall
from brainq.calls.settle import CallSettler, did_of
from brainq.calls.start import Starts
from brainq.calls.task_watch import TaskWatch
from brainq.contracts.claim import CallClaim, CallRef, Dropped
from brainq.contracts.memory import MemoryRetriever
from brainq.contracts.outcome import ToolFailure
from brainq.contracts.outside_token import new_outside_token
from brainq.observe.logs import logger
from brainq.observe.missing_brain import MissingBrain
from brainq.ports.brakes import Brakes
from brainq.ports.budgets import Budgets
from brainq.ports.call_rows import CallRows
from brainq.ports.calls import Calls
from brainq.ports.child_turns import ChildTurns
from brainq.ports.holds import Holds
from brainq.ports.lanes import Lanes
from brainq.ports.outside import Outside
from brainq.ports.stops import Stops
from brainq.tools.context import RunContext
from brainq.tools.deadline import DeadlineToken
from brainq.tools.mcp.sessions import close_sessions
from brainq.tools.tool import Tool

log = logger("brainq.calls")

NOT_STARTED = "not started"
MOST_LOST = 2  # a call that lost so many workers runs in a process where nothing else does


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

    def __init__(
        self,
        *,
        owner: str,
        brains: ByBrain[Brain],
        calls: Calls,
        lanes: Lanes,
        intents: CallRows,
        budgets: Budgets,
        beats: Beats,
        executor: BoundedToolExecutor,
        retriever: Callable[[Brain], MemoryRetriever | None] = lambda brain: None,
        stops: Stops | None = None,
        holds: Holds | None = None,
        outside: Outside | None = None,
        children: ChildTurns | None = None,
        brakes: Brakes | None = None,
        files: ResultFiles,
        watch: TaskWatch | None = None,
    ) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)  # each claim signs as an owner of its own, as in turn/advance.py
        self._calls = calls
        self._lanes = lanes
        parker = Parker(calls, outside, children, watch)

        def work_of(brain: Brain) -> BrainCalls:
            starts, found = Starts(brain, calls, intents, brakes), retriever(brain)
            memory = None if found is None else memory_tool(found)
            return BrainCalls(brain, starts, CallSettler(brain, calls, starts, parker, files), memory)

        self._brains = brains.each(work_of)
        self._missing = MissingBrain()
        self._budgets = budgets
        self._beats = beats
        self._executor = executor
        self._stops = stops
        self._holds = holds
        self._watch = watch
        if watch is not None:
            watch.begin()

    def close(self) -> None:
        """End what the process keeps for its tools: threads, child processes, MCP servers, the event loop."""
        if self._watch is not None:
            self._watch.close()
        self._executor.close()
        close_sessions()
        stop_tool_loop()

    def run(
        self, session_id: str, turn_id: str, call_id: str, attempt: int, abandon: Abandon | None = None
    ) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests.

        abandon   answers it instead where the call's function keeps this thread. None: the thread cannot be abandoned,
                  and the call gets one of its own
        """
        if abandon is None:
            return in_own_thread(partial(self.run, session_id, turn_id, call_id, attempt))
        # Before the claim, so that no stop falls between the claim's look at the turn and our listening.
        token = DeadlineToken(math.inf)
        with ExitStack() as held:
            if self._stops is not None:
                held.enter_context(self._stops.watch(session_id, turn_id, token.cancel))
            ref = CallRef(session_id, turn_id, call_id)
            claim = self._calls.claim(ref, attempt, f"{next(self._numbers)}@{self._owner}")
            if isinstance(claim, Dropped):
                # Another pool serves the call's effect: the doorbell was forged, or put into a wrong queue.
                tell = log.warning if claim.why == "unserved" else log.debug
                if claim.why == "no_brain":
                    self._missing.say("call", turn_id, self._brains.names)
                tell("doorbell dropped", turn_id=turn_id, call_id=call_id, why=claim.why)
                return f"dropped: {claim.why}"
            work = self._brains.of(claim.brain)
            assert work is not None  # the claim says no other brain's
            tool = work.tool(claim)
            if tool is None:
                return self._not_loaded(claim, work)
            token.end_within(min(claim.cap_ms, claim.remaining_ms) / 1000)
            beat = CallBeat(self._calls, claim)
            held.push(self._beats.renew(beat.beat, token.cancel))
            # The workers that ran it before are gone, and this call may be what killed them.
            runs_alone = claim.attempt > MOST_LOST and tool is not work.memory
            # What needs Redis comes before the intent: between that and the function nothing may fail.
            context = self._context(claim, tool, token, work.brain.name, runs_alone=runs_alone)
            beat.progress = lambda: context.newest_progress
            call = RunningCall(claim, tool, context, work.settler, self._beats, self._lanes, held, abandon)
            return self._start(work, call, runs_alone=runs_alone)

    def _start(self, work: BrainCalls, call: RunningCall, *, runs_alone: bool) -> str:
        claim = call.claim
        if not claim.effect.is_read and (word := work.starts.start(claim)) != "started":
            if word == "closed":  # a turn that is being cancelled waits for its calls: this one is over
                work.settler.settle(claim, NEVER_STARTED, never_started(claim))
            return NOT_STARTED
        return call.run_apart(self._executor) if runs_alone else call.run(self._executor)

    def _not_loaded(self, claim: CallClaim, work: BrainCalls) -> str:
        outcome = ToolFailure(
            error=f"tool {claim.tool!r} is not loaded by this worker; all workers must load the same brain",
            error_type="ToolNotLoaded",
        )
        report = report_of(claim, outcome)
        work.settler.settle(claim, outcome, report)
        return did_of("not loaded", report)

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
            budget=self._budgets.snapshot(session_id, turn_id) if tool.context_param else None,
            cwd=claim.cwd,
            metadata=claim.metadata,
            brain=brain,
            is_ready=partial(self._holds.is_ready, session_id, turn_id) if self._holds is not None else None,
            outside_token=self._calls.give_token(claim, new_token) if is_apart else "",
            give_token=partial(self._calls.give_token, claim),
        )
