"""CallRunner.run: claim a call, start it, run it within its bounds, record how it ended."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.loop import stop_tool_loop
from brainq.calls.memory import memory_tool
from brainq.calls.parking import Parker
from brainq.calls.report import (
    NEVER_STARTED,
    Report,
    changes_of,
    ending_of,
    never_started,
    notice_of,
    report_of,
    sources_of,
)
from brainq.calls.start import Starts
from brainq.calls.stopping import StopLatch
from brainq.contracts.callbacks import PostToolUse
from brainq.contracts.child_turn import ChildTurn
from brainq.contracts.claim import CallClaim, CallRef, Dropped, SettleReply
from brainq.contracts.did import OF_CALL, Did, Failed
from brainq.contracts.effect import Effect
from brainq.contracts.memory import MemoryRetriever
from brainq.contracts.message import ToolCall
from brainq.contracts.outcome import ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout
from brainq.contracts.outside_token import new_outside_token
from brainq.contracts.status import TraceStatus
from brainq.observe.logs import logger
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
from brainq.tools.opening import MEMORY_TOOL
from brainq.tools.pending import Pending
from brainq.tools.tool import Tool

log = logger("brainq.calls")

MOST_LOST = 2  # a call that lost so many workers runs in a process where nothing else does


class CallRunner:
    """Runs calls in a worker of the parallel or the serial pool.

    stops      tells of a cancel at once; without it a call learns of one from its next beat
    holds      lets tools wait until their turn is ready
    outside    keeps tokens of the tools' own making
    children   starts child turns
    brakes     puts back the holds that Redis has lost
    """

    def __init__(
        self,
        *,
        owner: str,
        brain: Brain,
        calls: Calls,
        lanes: Lanes,
        intents: CallRows,
        budgets: Budgets,
        beats: Beats,
        executor: BoundedToolExecutor,
        retriever: MemoryRetriever | None = None,
        stops: Stops | None = None,
        holds: Holds | None = None,
        outside: Outside | None = None,
        children: ChildTurns | None = None,
        brakes: Brakes | None = None,
    ) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)  # each claim signs as an owner of its own, as in turn/advance.py
        self._brain = brain
        self._calls = calls
        self._lanes = lanes
        self._starts = Starts(brain=brain, calls=calls, intents=intents, brakes=brakes)
        self._budgets = budgets
        self._beats = beats
        self._executor = executor
        self._stops = stops
        self._holds = holds
        self._parker = Parker(calls, outside, children)
        self._memory = None if retriever is None else memory_tool(retriever)

    def close(self) -> None:
        """End what the process keeps for its tools: threads, child processes, the event loop."""
        self._executor.close()
        stop_tool_loop()

    def run(self, session_id: str, turn_id: str, call_id: str, attempt: int) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests."""
        ref = CallRef(session_id, turn_id, call_id)
        latch = StopLatch()
        with ExitStack() as held:
            if self._stops is not None:
                held.enter_context(self._stops.watch(session_id, turn_id, latch.stop))
            claim = self._calls.claim(ref, attempt, f"{next(self._numbers)}@{self._owner}")
            if isinstance(claim, Dropped):
                # Another pool serves the call's effect: the doorbell was forged, or put into a wrong queue.
                tell = log.warning if claim.why == "unserved" else log.debug
                tell("doorbell dropped", turn_id=turn_id, call_id=call_id, why=claim.why)
                return f"dropped: {claim.why}"
            return self._claimed(claim, latch, held)

    def _claimed(self, claim: CallClaim, latch: StopLatch, held: ExitStack) -> str:
        tool = (
            self._memory
            if claim.tool == MEMORY_TOOL and claim.step == 0
            else self._brain.tools.get(claim.tool)
        )
        if tool is None:
            outcome = ToolFailure(
                error=f"tool {claim.tool!r} is not loaded by this worker; all workers must load the same brain",
                error_type="ToolNotLoaded",
            )
            report = report_of(claim, outcome)
            self._settle(claim, None, outcome, None, report)
            return _did("not loaded", report)
        token = DeadlineToken(min(claim.cap_ms, claim.remaining_ms) / 1000)
        latch.guard(token)
        held.enter_context(self._beats.renew(lambda: self._calls.beat(claim), token.cancel))
        # What needs Redis comes before the intent: between that and the function nothing may fail.
        context = self._context(claim, tool, token)
        if not claim.effect.is_read and (word := self._starts.start(claim)) != "started":
            if word == "closed":  # a turn that is being cancelled waits for its calls: this one is over
                self._settle(claim, None, NEVER_STARTED, None, never_started(claim))
            return "not started"
        return self._run(claim, tool, token, context)

    def _context(self, claim: CallClaim, tool: Tool, token: DeadlineToken) -> RunContext:
        holds = self._holds
        # A child process cannot note a token itself.
        is_apart = tool.context_param and (tool.spec.isolation == "process" or self._runs_apart(claim, tool))
        return RunContext(
            session_id=claim.session_id,
            turn_id=claim.turn_id,
            call_id=claim.call_id,
            token=token,
            step=claim.step,
            attempt=claim.attempt,
            budget=self._budgets.snapshot(claim.session_id, claim.turn_id) if tool.context_param else None,
            cwd=claim.cwd,
            metadata=claim.metadata,
            is_ready=partial(holds.is_ready, claim.session_id, claim.turn_id) if holds is not None else None,
            outside_token=self._calls.give_token(claim, new_outside_token(_ref(claim))) if is_apart else "",
            give_token=partial(self._calls.give_token, claim),
        )

    def _runs_apart(self, claim: CallClaim, tool: Tool) -> bool:
        """The workers that ran it before are gone, and this call may be what killed them."""
        return claim.attempt > MOST_LOST and tool is not self._memory

    def _run(self, claim: CallClaim, tool: Tool, token: DeadlineToken, context: RunContext) -> str:
        has_ended = False

        def ended_late(outcome: ToolOutcome) -> None:
            # From the abandoned function's own thread: its lanes were kept until now.
            nonlocal has_ended
            try:
                self._starts.record(claim, outcome, late=True)
                self._settle(claim, tool, outcome, None, report_of(claim, outcome))
            finally:
                has_ended = True

        def keep_lanes() -> str:
            return "LOST" if has_ended else self._lanes.beat(_ref(claim))

        if self._runs_apart(claim, tool):
            ended = self._executor.run_apart(tool, claim.arguments, context, token)
        else:
            ended = self._executor.run(tool, claim.arguments, context, token, on_late=ended_late)
        if isinstance(ended, Pending | ChildTurn):
            ended = self._parker.park(claim, ended, context.outputs())
        if isinstance(ended, SettleReply):
            # A write's intent stays open: its outcome is what comes from outside.
            return _did(ended.word.lower(), None)
        still_runs = isinstance(ended, ToolTimeout) and ended.still_running
        if still_runs and claim.lanes:
            self._beats.renew(keep_lanes, _ignore)
        outcome, report = ending_of(claim, ended, token)
        if claim.effect is not Effect.READ_ONLY:
            self._starts.record(claim, outcome, late=False)
        reply = self._settle(claim, tool, outcome, context, report, still_runs=still_runs)
        if reply.word == "LATE":
            self._starts.record(claim, outcome, late=True)
        return _did(reply.word.lower(), report)

    def _settle(
        self,
        claim: CallClaim,
        tool: Tool | None,
        outcome: ToolOutcome,
        context: RunContext | None,
        report: Report,
        *,
        still_runs: bool = False,
    ) -> SettleReply:
        hook = self._brain.callbacks.on_post_tool_use
        # What a turn begins with is not a tool use of the model's.
        if hook is not None and tool is not None and context is not None and claim.step > 0:
            _tell(hook, claim, tool, outcome)
        outputs = context.outputs() if context is not None else None
        asked_block = isinstance(outcome, ToolSuccess | ToolFailure) and outcome.block_tool
        return self._calls.settle(
            claim,
            status=report.status,
            message=report.message,
            detail=report.detail,
            latency_ms=outcome.latency_ms,
            retryable=report.retryable,
            sources=sources_of(outputs, claim.step) if outputs else (),
            block_tool=asked_block or bool(outputs and outputs.block_tool),
            notice=None if claim.effect is Effect.READ_ONLY else notice_of(claim, outcome),
            changes=changes_of(outputs) if outputs and outputs.changes else (),
            still_runs=still_runs,
        )


def _tell(hook: Callable[[PostToolUse], None], claim: CallClaim, tool: Tool, outcome: ToolOutcome) -> None:
    call = ToolCall(id=claim.call_id, name=claim.tool, arguments=dict[str, object](claim.arguments))
    try:
        hook(PostToolUse(claim.turn_id, claim.session_id, call, tool.spec, outcome))
    except Exception as failure:
        log.error("on_post_tool_use raised", failure=failure, turn_id=claim.turn_id, call_id=claim.call_id)


def _did(word: str, report: Report | None) -> Did:
    if word == "lost":  # the sweeper showed it as failed; a success of the same task would stand in its place
        return Did(word, Failed.CALL_LOST)
    if report is None:
        return Did(word)
    # A failure's detail begins with the name of the error's class; others may be a tool's own words.
    why = report.detail.partition(" ")[0] if report.status is TraceStatus.FAILED else ""
    return Did(word, OF_CALL.get(report.status), why)


def _ref(claim: CallClaim) -> CallRef:
    return CallRef(claim.session_id, claim.turn_id, claim.call_id)


def _ignore(word: str) -> None:
    """The lanes were left, or taken from us after a freeze: there is nothing to beat for."""
