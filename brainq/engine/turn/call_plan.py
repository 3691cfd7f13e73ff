"""The plan of the calls in a model's reply before they are committed: ids, gates, waves, lanes, approvals."""

from __future__ import annotations

import copy
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from brainq.contracts.call import ToolDenied
from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.ids import call_id
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply
from brainq.contracts.people import ApprovalRequest, ApprovalRequirement
from brainq.contracts.status import Effect
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.middleware import check_call
from brainq.engine.gates.canonical import call_json
from brainq.engine.gates.chain import Allowed, Denied, GateChain, ReplayControl, Verdict
from brainq.engine.tools.lanes import resource_keys
from brainq.engine.tools.results import tool_message
from brainq.engine.tools.tool import MAX_REASON_CHARS, Tool
from brainq.engine.turn.client_tools import client_call, turn_specs
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.failures import failure_name

log = logger("brainq.turn")
SUMMARY_SOURCE = "a summary"
MAX_SOURCES = 5  # that the reason of an approval names
MAX_CALLS_A_REPLY = 128
"""How many calls of one reply may run. Calls beyond that are denied, each with a message to the model."""


@dataclass(frozen=True, slots=True)
class Schedulable:
    """The facts about a call that the scheduler needs: its effect, the resource keys of a read, and whether the client
    runs it."""

    effect: Effect
    resources: frozenset[str] = frozenset()
    is_client: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScheduler:
    """The scheduler, which assigns calls to numbered waves. The waves run one after another.

    A call that is not a read keeps its place in the model's order: the reads before it run first, then it runs alone,
    then the rest follows. Reads that share a resource key go into separate waves.

    Calls that the client runs are scheduled like reads: they are open at the same time, and a write of the brain waits
    for them. With `parallel=False`, every call has a wave of its own; only neighbouring calls of the client share one,
    because the client orders its own work.
    """

    parallel: bool = True

    def waves(self, calls: Sequence[Schedulable]) -> list[int]:
        """Return the wave of each call, counted from 1, in the order of the calls.

        >>> read, write = Schedulable(Effect.READ_ONLY), Schedulable(Effect.LOCAL_WRITE)
        >>> ToolScheduler().waves([read, read, write, read])
        [1, 1, 2, 3]
        """
        numbers: list[int] = []
        wave, used, is_open, all_client = 0, set[str](), False, False
        for call in calls:
            shares = call.is_client or call.effect.is_read
            may = self.parallel or (all_client and call.is_client)
            if not (may and is_open and shares and not (call.resources & used)):
                wave, used, all_client = wave + 1, set(), True
            used |= call.resources
            is_open, all_client = shares, all_client and call.is_client
            numbers.append(wave)
        return numbers


def untrusted_sources(brain: Brain, view: TurnView) -> tuple[str, ...]:
    """Return the names of the untrusted tools whose results the model has read, without duplicates.

    Used for a brain that restricts writes after such results.

    Results that a compaction has dropped can no longer be checked, so its summary counts as untrusted.
    """
    is_session = brain.after_untrusted == "ask_in_session"
    messages = view.history.messages if is_session else view.own_messages
    names = [*view.opening, *(message.name for message in messages if message.role == "tool")]
    found = [name for name in names if (tool := brain.tools.get(name)) is not None and tool.untrusted]
    if view.compacted or (is_session and _has_summary(messages)):
        found.append(SUMMARY_SOURCE)
    return tuple(dict.fromkeys(found))


def _has_summary(messages: Iterable[Message]) -> bool:
    return any(message.note_kind == "summary" for message in messages)


@dataclass(frozen=True, slots=True)
class CallPlan:
    """The calls of one reply, ready to be committed.

    `message` is the assistant's message with the calls under brainq's ids.
    """

    message: Message
    calls: tuple[PlannedCall, ...]
    block_tools: tuple[str, ...]

    @property
    def allowed(self) -> tuple[str, ...]:
        """Return the ids of the calls that may run, in the model's order."""
        return tuple(call.id for call in self.calls if not call.denied)


@dataclass(frozen=True, slots=True)
class CallPlanner:
    """The planner of the calls in one reply."""

    brain: Brain
    view: TurnView
    step: int
    reply: ModelReply

    def judge(self) -> list[Verdict]:
        """Judge the calls by the gates that come before execution. This runs the brain's hooks, once."""
        brain, view, request, calls = self.brain, self.view, self.view.request, self._own_calls()
        gates = GateChain(
            request.turn_id,
            request.session_id,
            turn_specs(brain, request) if request.client_tools else brain.tools.specs,
            ReplayControl(view.succeeded, view.write_epoch),
            set(view.blocked),
            hook=partial(check_call, brain.hooks.check_call) if brain.hooks.check_call else None,
            keys_of=resource_keys,
        )
        judged: list[Verdict] = [gates.judge(call) for call in calls[:MAX_CALLS_A_REPLY]]
        return judged + [_one_too_many(call, len(calls)) for call in calls[MAX_CALLS_A_REPLY:]]

    def plan(self, verdicts: Sequence[Verdict]) -> CallPlan:
        """Assign the judged calls to waves. A call that a person must approve gets the reason for it."""
        brain, view = self.brain, self.view
        running = [verdict for verdict in verdicts if isinstance(verdict, Allowed)]
        waves = iter(self._waves(running) if len(running) > 1 else (1,))
        untrusted = () if brain.after_untrusted is None else untrusted_sources(brain, view)
        planned = tuple(
            self._planned_call(verdict, next(waves), untrusted)
            if isinstance(verdict, Allowed)
            else self._denied_call(verdict)
            for verdict in verdicts
        )
        message = Message(
            role="assistant",
            content=self.reply.text,
            calls=tuple(verdict.call for verdict in verdicts),
            turn=view.request.turn_id,
            step=self.step,
            reasoning=self.reply.reasoning,
        )
        blocked = tuple(v.call.name for v in verdicts if isinstance(v, Denied) and v.block_tool)
        return CallPlan(message, planned, blocked)

    def refuse(self, problem: str, text: str) -> CallPlan:
        """Return the plan of a reply that is incomplete or wrong: no call runs, and each gets `text` as its result.

        problem   the word for events
        text      the text for the model
        """
        denied = [
            Denied(_with_object(call), ToolDenied(reason="cut", message=f"Not run. {text}"))
            for call in self._own_calls()
        ]
        message = Message(
            role="assistant",
            content=self.reply.text,
            calls=tuple(verdict.call for verdict in denied),
            turn=self.view.request.turn_id,
            step=self.step,
            extra={"problem": problem},
        )
        return CallPlan(message, tuple(self._denied_call(verdict) for verdict in denied), ())

    def _waves(self, calls: Sequence[Allowed]) -> Sequence[int]:
        shapes = [
            Schedulable(
                call.spec.effect,
                frozenset(call.keys) if call.spec.effect.is_read else frozenset(),
                is_client=call.spec.name not in self.brain.tools,
            )
            for call in calls
        ]
        return ToolScheduler(parallel=self.brain.parallel_tools).waves(shapes)

    def _own_calls(self) -> list[ToolCall]:
        """Return the reply's calls under brainq's ids. A call without a name gets one, because people and some services
        need one."""
        return [
            call.model_copy(
                update={"id": call_id(self.step, index), "provider_id": call.id, "name": call.name or "unnamed"}
            )
            for index, call in enumerate(self.reply.calls)
        ]

    def _planned_call(self, verdict: Allowed, wave: int, untrusted: Sequence[str]) -> PlannedCall:
        brain, request, spec = self.brain, self.view.request, verdict.spec
        tool = brain.tools.get(spec.name)
        # A client's tool needs no lane.
        lanes = () if spec.effect.is_read or tool is None else verdict.keys
        hooked = bool(brain.hooks.after_call)
        return PlannedCall(
            id=verdict.call.id,
            tool=spec.name,
            effect=spec.effect,
            wave=wave,
            arguments_json=call_json(verdict.arguments, verdict.args_hash, lanes, request, hooked=hooked),
            args_hash=verdict.args_hash,
            fingerprint=verdict.fingerprint,
            cap_ms=int(spec.timeout_s * 1000),
            lanes=lanes,
            idempotent=spec.idempotent,
            repairs=verdict.repairs,
            ask=None if tool is None else approval_for(brain, tool, verdict.arguments, untrusted),
            client=client_call(verdict) if tool is None else None,
        )

    def _denied_call(self, verdict: Denied) -> PlannedCall:
        request = self.view.request
        spec = turn_specs(self.brain, request).get(verdict.call.name)
        message = tool_message(verdict.outcome, verdict.call.id, verdict.call.name, request.turn_id, self.step)
        return PlannedCall(
            id=verdict.call.id,
            tool=verdict.call.name,
            # An unknown tool counts as DESTRUCTIVE, the strictest effect, like a tool that declares no effect.
            effect=Effect.DESTRUCTIVE if spec is None else spec.effect,
            wave=1,
            arguments_json="",
            args_hash="",
            fingerprint="",
            cap_ms=0,
            repairs=verdict.outcome.repairs,
            denied=verdict.outcome.reason,
            message_json=message.model_dump_json(exclude_defaults=True),
        )


def deny_over_budget(verdicts: Sequence[Verdict], refused: Collection[str]) -> list[Verdict]:
    """Return the verdicts, with the calls in `refused` denied because the budget is used up."""
    spent = ToolDenied(
        reason="budget", message="Not run: this turn has used up its tool calls. Answer with what is known."
    )
    return [
        Denied(verdict.call, spent.model_copy(update={"repairs": verdict.repairs}))
        if isinstance(verdict, Allowed) and verdict.call.id in refused
        else verdict
        for verdict in verdicts
    ]


def _one_too_many(call: ToolCall, count: int) -> Denied:
    text = (
        f"Not run: a reply may hold at most {MAX_CALLS_A_REPLY} tool calls, and this one held {count}; the first "
        f"{MAX_CALLS_A_REPLY} were taken. Make this call again in your next reply if it is still needed."
    )
    return Denied(_with_object(call), ToolDenied(reason="too_many", message=text))


def _with_object(call: ToolCall) -> ToolCall:
    """Return the call in a form that services accept in a history: arguments that are not a JSON object become `{}`."""
    return call.model_copy(update={"arguments": {}}) if isinstance(call.arguments, str) else call


def approval_for(
    brain: Brain, tool: Tool, arguments: Mapping[str, Any], untrusted: Sequence[str] = ()
) -> ApprovalRequirement | None:
    """Return why this call needs an approval and how long it waits for one. Returns None if it needs none.

    The tool's own rule comes first, then the brain's rules. A tool with `approval=False` skips both. If a rule raises,
    the call needs an approval. `untrusted` names the untrusted tools whose results the turn has read.
    """
    if tool.approval is False:
        return None
    reason = "" if tool.approval is None else _tool_reason(brain, tool, arguments)
    if not reason and tool.spec.effect in brain.approvals.effects:
        reason = f"calls with the effect {tool.spec.effect} need an approval"
    if not reason and untrusted and not tool.spec.effect.is_read:
        sources = ", ".join(untrusted[:MAX_SOURCES])
        reason = f"the turn has read results of {sources}, which are not trusted"
    return ApprovalRequirement(reason=reason, timeout_s=brain.approvals.timeout_s) if reason else None


def _tool_reason(brain: Brain, tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Return the reason that the tool's own rule gives for an approval, or "" if it requires none."""
    rule = tool.approval
    if rule is None or rule is False:
        return ""
    if rule is True:
        return "every call of this tool needs an approval"
    if isinstance(rule, str):
        return rule
    try:
        return _rule_answer(rule, arguments)
    except Exception as error:
        log.error("approval rule raised", failure=error, brain=brain.name, tool=tool.name)
        return f"the approval rule failed: {failure_name(error)}"


def _rule_answer(rule: Callable[[dict[str, Any]], object], arguments: Mapping[str, Any]) -> str:
    # A copy is passed, so that the rule cannot change what is approved, hashed and run.
    answer = rule(copy.deepcopy(dict(arguments)))
    if inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("the rule returned an awaitable; it must return its answer")
    if not answer:
        return ""
    reason = answer.strip()[:MAX_REASON_CHARS] if isinstance(answer, str) else ""
    return reason or "the tool asks for an approval of this call"


def approval_rows(claim: TurnClaim, plan: Sequence[PlannedCall], redact: bool) -> list[ApprovalRequest]:
    """Return one row for each call that needs an approval. With `redact`, SQL keeps no arguments, and people see the
    arguments that Redis has."""
    return [
        ApprovalRequest(
            session_id=claim.session_id,
            turn_id=claim.turn_id,
            call_id=call.id,
            tool=call.tool,
            effect=call.effect,
            args_hash=call.args_hash,
            args_json=None if redact else json.dumps(json.loads(call.arguments_json)["arguments"]),
            reason=call.ask.reason,
            timeout_s=call.ask.timeout_s,
        )
        for call in plan
        if call.ask is not None
    ]
