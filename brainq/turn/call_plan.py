"""From a model's reply to the calls that are committed: ids, gates, waves, lanes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from brainq.brain.brain import Brain
from brainq.brain.middleware import check_call
from brainq.contracts.call import ToolDenied
from brainq.contracts.claim import PlannedCall, call_json
from brainq.contracts.ids import call_id
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import TurnView
from brainq.gates.chain import Allowed, Denied, GateChain, ReplayControl, Verdict
from brainq.tools.lanes import resource_keys
from brainq.tools.results import tool_message
from brainq.turn.approval_rules import approval_for
from brainq.turn.client_tools import client_call, turn_specs

SUMMARY_SOURCE = "a summary"
MAX_CALLS_A_REPLY = 128
"""How many calls of one reply run. The calls behind them are denied, each with a message to the model."""


@dataclass(frozen=True, slots=True)
class Schedulable:
    """What the scheduler needs of a call: its effect, for reads the resource keys it touches, and whether the client
    runs it."""

    effect: Effect
    resources: frozenset[str] = frozenset()
    is_client: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScheduler:
    """Puts calls into numbered waves; waves run one after another.

    The model's order around anything that is not a read is kept: reads before it, then it alone, then what
    follows. Reads that share a resource key go into separate waves. Calls that the client runs stand among the reads:
    they are open side by side, and a write of the brain's waits for them. With `parallel=False`, or one call, every
    call has a wave of its own, but for neighbours that the client runs: what it does is its own to order.
    """

    parallel: bool = True

    def waves(self, calls: Sequence[Schedulable]) -> list[int]:
        """The wave of each call, counted from 1, in the calls' order.

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
    """The untrusted tools whose results the model has read, each once, for a brain with a policy about them.

    What a compaction has dropped cannot be looked at any more: its summary counts as untrusted.
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
    """One reply's calls, ready to be committed. `message` carries them to the history under our ids."""

    message: Message
    calls: tuple[PlannedCall, ...]
    block_tools: tuple[str, ...]

    @property
    def allowed(self) -> tuple[str, ...]:
        """The calls that are to run, in the model's order."""
        return tuple(call.id for call in self.calls if not call.denied)


def judge_reply(brain: Brain, view: TurnView, step: int, reply: ModelReply) -> list[Verdict]:
    """The calls of `reply` through the gates that come before a call; hooks of the brain run here, once."""
    request, calls = view.request, _with_own_ids(reply, step)
    gates = GateChain(
        request.turn_id,
        request.session_id,
        turn_specs(brain, request),
        ReplayControl(view.succeeded, view.write_epoch),
        set(view.blocked),
        hook=partial(check_call, brain.hooks.check_call) if brain.hooks.check_call else None,
        keys_of=partial(resource_keys, session_id=request.session_id),
    )
    judged: list[Verdict] = [gates.judge(call) for call in calls[:MAX_CALLS_A_REPLY]]
    return judged + [_one_too_many(call, len(calls)) for call in calls[MAX_CALLS_A_REPLY:]]


def plan_calls(brain: Brain, view: TurnView, step: int, reply: ModelReply, verdicts: Sequence[Verdict]) -> CallPlan:
    """Put the judged calls of `reply` in order; those that a person must let through carry why."""
    request = view.request
    running = [verdict for verdict in verdicts if isinstance(verdict, Allowed)]
    shapes = [
        Schedulable(
            verdict.spec.effect,
            frozenset(verdict.keys) if verdict.spec.effect.is_read else frozenset(),
            is_client=verdict.spec.name not in brain.tools,
        )
        for verdict in running
    ]
    waves = iter(ToolScheduler(parallel=brain.parallel_tools).waves(shapes))
    untrusted = () if brain.after_untrusted is None else untrusted_sources(brain, view)
    planned = tuple(
        _planned_call(brain, verdict, next(waves), request, untrusted)
        if isinstance(verdict, Allowed)
        else _denied_call(brain, verdict, request, step)
        for verdict in verdicts
    )
    message = Message(
        role="assistant",
        content=reply.text,
        calls=tuple(verdict.call for verdict in verdicts),
        turn=request.turn_id,
        step=step,
        reasoning=reply.reasoning,
    )
    blocked = tuple(v.call.name for v in verdicts if isinstance(v, Denied) and v.block_tool)
    return CallPlan(message, planned, blocked)


def _with_own_ids(reply: ModelReply, step: int) -> list[ToolCall]:
    """The reply's calls under our ids. One without a name gets one: people read it, and services want one back."""
    return [
        call.model_copy(update={"id": call_id(step, index), "provider_id": call.id, "name": call.name or "unnamed"})
        for index, call in enumerate(reply.calls)
    ]


def _one_too_many(call: ToolCall, count: int) -> Denied:
    text = (
        f"Not run: a reply may hold at most {MAX_CALLS_A_REPLY} tool calls, and this one held {count}; the first "
        f"{MAX_CALLS_A_REPLY} were taken. Make this call again in your next reply if it is still needed."
    )
    return Denied(_with_object(call), ToolDenied(reason="too_many", message=text))


def _with_object(call: ToolCall) -> ToolCall:
    """The call as a service takes it back: arguments that are no JSON object are left out."""
    return call.model_copy(update={"arguments": {}}) if isinstance(call.arguments, str) else call


def refuse_calls(brain: Brain, view: TurnView, step: int, reply: ModelReply, problem: str, text: str) -> CallPlan:
    """The calls of a reply that is not whole: none runs, each gets the reason as its result.

    problem, text   the word for events, and what the model reads
    """
    request = view.request
    turn_id = request.turn_id
    denied = [
        Denied(_with_object(call), ToolDenied(reason="cut", message=f"Not run. {text}"))
        for call in _with_own_ids(reply, step)
    ]
    message = Message(
        role="assistant",
        content=reply.text,
        calls=tuple(verdict.call for verdict in denied),
        turn=turn_id,
        step=step,
        extra={"problem": problem},
    )
    return CallPlan(message, tuple(_denied_call(brain, verdict, request, step) for verdict in denied), ())


def deny_over_budget(verdicts: Sequence[Verdict], refused: Collection[str]) -> list[Verdict]:
    """The verdicts, those calls denied that the budget refused."""
    spent = ToolDenied(
        reason="budget", message="Not run: this turn has used up its tool calls. Answer with what is known."
    )
    return [
        Denied(verdict.call, spent.model_copy(update={"repairs": verdict.repairs}))
        if isinstance(verdict, Allowed) and verdict.call.id in refused
        else verdict
        for verdict in verdicts
    ]


def _planned_call(
    brain: Brain, verdict: Allowed, wave: int, request: TurnRequest, untrusted: Sequence[str]
) -> PlannedCall:
    spec, tool = verdict.spec, brain.tools.get(verdict.spec.name)
    # A client's tool runs where no lane of ours reaches.
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


def _denied_call(brain: Brain, verdict: Denied, request: TurnRequest, step: int) -> PlannedCall:
    spec = turn_specs(brain, request).get(verdict.call.name)
    message = tool_message(verdict.outcome, verdict.call.id, verdict.call.name, request.turn_id, step)
    return PlannedCall(
        id=verdict.call.id,
        tool=verdict.call.name,
        # Of a tool that nobody knows the strictest, as of one that names none.
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
