"""From a turn's chat events to events of AG-UI 1.0: pure.

Each step is an assistant message with its calls, each result a tool message. The text of an attempt that is replaced
is retracted by a snapshot of the messages without it. A span of reasoning is a message of its own. A run ends with its
turn, with requests to the client, or cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
    Interrupt,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    TokenUsage,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import (
    ApprovalRequested,
    ApprovalResolved,
    CallEnded,
    CallRequested,
    ChatEvent,
    ChatState,
    ClientCallRequested,
    EventDetails,
    OtherEvent,
    ReasoningAdded,
    ReasoningEnded,
    ReasoningStarted,
    StepReset,
    StepStarted,
    TextAdded,
    TextEnded,
    TurnEnded,
    fold,
)

DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "description": "Arguments in place of the model's, all of them."},
        "reason": {"type": "string", "description": "Why not; the model reads it."},
    },
    "required": ["approved"],
}
"""The schema of an answer to an approval."""


def interrupt_event(
    thread_id: str, run_id: str, waiting: Mapping[str, ApprovalRequested | ClientCallRequested]
) -> BaseEvent:
    """The run's turn waits for its reader: for approvals, or for results of the client's own calls."""
    interrupts = [_interrupt(ask) for ask in waiting.values() if isinstance(ask, ApprovalRequested)]
    outcome = (
        RunFinishedInterruptOutcome(interrupts=interrupts)
        if interrupts
        else RunFinishedSuccessOutcome(pending_tool_call_ids=list(waiting))
    )
    return RunFinishedEvent(thread_id=thread_id, run_id=run_id, outcome=outcome)


def cut_events(why: str) -> list[BaseEvent]:
    """Ends a run whose turn goes on: the client reconnects."""
    return [RunErrorEvent(message=why, code="come_again")]


def end_event(thread_id: str, run_id: str, result: TurnResult) -> BaseEvent:
    """The run's turn is over."""
    usage = _usage(result)
    if result.ending is Ending.FAILED or result.stop_reason is StopReason.INVALID_OUTPUT:
        return RunErrorEvent(message=result.error or "the turn failed", code=result.stop_reason.value, usage=usage)
    outcome = (
        RunFinishedCancelledOutcome()
        if result.ending is Ending.CANCELLED
        else RunFinishedSuccessOutcome(pending_tool_call_ids=[])
    )
    return RunFinishedEvent(
        thread_id=thread_id,
        run_id=run_id,
        outcome=outcome,
        usage=usage,
        result=None if result.ending is Ending.CANCELLED else _final_result(result),
    )


def _final_result(result: TurnResult) -> dict[str, Any]:
    return {
        "turnId": result.turn_id,
        "text": result.text,
        "ending": result.ending.value,
        "stopReason": result.stop_reason.value,
        "costUsd": result.cost_usd,
        "steps": result.steps,
        "toolCalls": result.tool_calls,
    }


def _usage(result: TurnResult) -> list[TokenUsage]:
    """One entry a model."""
    models = list(dict.fromkeys(spend.model for spend in result.spends))
    return [
        TokenUsage(
            model=model,
            input_tokens=sum(spend.input_tokens for spend in spends),
            output_tokens=sum(spend.output_tokens for spend in spends),
            total_tokens=sum(spend.input_tokens + spend.output_tokens for spend in spends),
            cached_input_tokens=sum(spend.cache_read_tokens for spend in spends),
            cache_write_input_tokens=sum(spend.cache_creation_tokens for spend in spends),
        )
        for model in models
        for spends in [[spend for spend in result.spends if spend.model == model]]
    ]


def _interrupt(ask: ApprovalRequested) -> Interrupt:
    expires = datetime.fromtimestamp(ask.expires_at_ms / 1000, UTC)
    return Interrupt(
        id=ask.id,
        reason="tool_call",
        message=ask.reason or f"{ask.tool} needs an approval",
        tool_call_id=ask.id,
        response_schema=DECISION_SCHEMA,
        expires_at=expires.isoformat(timespec="milliseconds"),
    )


@dataclass(frozen=True, slots=True)
class RunState:
    """A run so far.

    messages    the conversation as the client has it by now
    answered    calls whose result the client has, so it is not sent
    step        the open step; 0: none is open
    message_id  of the open text; empty: none is open
    text        the open text so far
    """

    chat: ChatState
    thread_id: str
    run_id: str
    messages: tuple[Message, ...]
    answered: frozenset[str] = frozenset()
    step: int = 0
    message_id: str = ""
    text: str = ""


Rendered = tuple[RunState, list[BaseEvent]]


def initial_state(
    turn_id: str, thread_id: str, run_id: str, messages: Sequence[Message], answered: Iterable[str] = ()
) -> RunState:
    """`messages`: the conversation before the turn's own."""
    return RunState(ChatState(turn_id), thread_id, run_id, tuple(messages), frozenset(answered))


def opening_events(state: RunState, takes_back: Sequence[Message] = ()) -> list[BaseEvent]:
    """Begins a run: at the turn's beginning, or after an interrupt, where its step continues.

    takes_back   the messages of the turn that the client has, which will be sent again
    """
    begun: list[BaseEvent] = [
        RunStartedEvent(thread_id=state.thread_id, run_id=state.run_id, protocol_version=PROTOCOL_VERSION)
    ]
    if takes_back:
        begun += _retraction_snapshots(state.messages, takes_back)
    if state.step:
        begun.append(StepStartedEvent(step_name=_step_name(state.step)))
    return begun


def render_event(state: RunState, event: TurnEvent, more: EventDetails) -> Rendered:
    """The state after an event, and its events of AG-UI."""
    chat, chat_events = fold(state.chat, event, more)
    state = replace(state, chat=chat)
    events: list[BaseEvent] = []
    for chat_event in chat_events:
        state, added = _render(state, chat_event)
        events += added
    return state, events


def rest_events(state: RunState) -> list[BaseEvent]:
    """Ends a run whose turn waits for its reader."""
    closed, events = _end_step(state)
    return [*events, interrupt_event(closed.thread_id, closed.run_id, closed.chat.waiting)]


def _render(state: RunState, event: ChatEvent) -> Rendered:
    match event:
        case StepStarted(step):
            state, events = _end_step(state)
            return replace(state, step=step), [*events, StepStartedEvent(step_name=_step_name(step))]
        case StepReset(step):
            return _retract(state, _message_id(state, step))
        case TextAdded(text, step):
            return _render_text(state, _message_id(state, step), text)
        case TextEnded():
            return _end_text(state)
        case ReasoningStarted(span):
            return _start_reasoning(state, _span_id(state, span))
        case ReasoningAdded(span, text):
            return state, [ReasoningMessageContentEvent(message_id=_span_id(state, span), delta=text)]
        case ReasoningEnded(span, text):
            return _end_reasoning(state, _span_id(state, span), text)
        case CallRequested(call):
            return _render_call(state, call)
        case CallEnded(call):
            return _render_result(state, call)
        case TurnEnded():
            return _render_end(state, event)
        case ClientCallRequested(id, tool, _):
            return state, [_custom("call.handed", {"toolCallId": id, "toolCallName": tool})]
        case ApprovalRequested(id, tool, reason):
            requested = {"toolCallId": id, "toolCallName": tool, "reason": reason}
            return state, [_custom("approval.requested", requested)]
        case ApprovalResolved(id, _, decision, arguments):
            decided = {"toolCallId": id, "decision": decision, "editedArgs": arguments}
            return state, [_custom("approval.decided", decided)]
        case OtherEvent(noted):
            return state, [_custom(noted.kind.value, noted.data)]


def _step_name(step: int) -> str:
    return f"step {step}"


def _message_id(state: RunState, step: int) -> str:
    return f"{state.chat.turn_id}-s{step}"


def _span_id(state: RunState, span: str) -> str:
    return f"{state.chat.turn_id}-{span}"


def _custom(kind: str, value: Any) -> CustomEvent:
    return CustomEvent(name=f"brainq.{kind}", value=value)


def _render_text(state: RunState, message_id: str, text: str) -> Rendered:
    added: list[BaseEvent] = []
    if state.message_id != message_id:
        state, added = _end_text(state)
        added.append(TextMessageStartEvent(message_id=message_id, role="assistant"))
    added.append(TextMessageContentEvent(message_id=message_id, delta=text))
    return replace(state, message_id=message_id, text=state.text + text), added


def _end_text(state: RunState) -> Rendered:
    if not state.message_id:
        return state, []
    message_id = state.message_id
    state = _with_message(state, AssistantMessage(id=message_id, content=state.text))
    return replace(state, message_id="", text=""), [TextMessageEndEvent(message_id=message_id)]


def _start_reasoning(state: RunState, message_id: str) -> Rendered:
    if state.message_id:  # the text's message comes before it
        state = _with_message(state, AssistantMessage(id=state.message_id, content=state.text))
    return _with_message(state, ReasoningMessage(id=message_id, content="")), [
        ReasoningStartEvent(message_id=message_id),
        ReasoningMessageStartEvent(message_id=message_id, role="reasoning"),
    ]


def _end_reasoning(state: RunState, message_id: str, text: str) -> Rendered:
    return _with_message(state, ReasoningMessage(id=message_id, content=text)), [
        ReasoningMessageEndEvent(message_id=message_id),
        ReasoningEndEvent(message_id=message_id),
    ]


def _end_step(state: RunState) -> Rendered:
    state, events = _end_text(state)
    if state.step:
        events.append(StepFinishedEvent(step_name=_step_name(state.step)))
    return replace(state, step=0), events


def _retract(state: RunState, message_id: str) -> Rendered:
    state, events = _end_text(state)
    gone = [
        message for message in state.messages if message.id == message_id or message.id.startswith(f"{message_id}-")
    ]
    left = tuple(message for message in state.messages if message not in gone)
    return replace(state, messages=left), [*events, *_retraction_snapshots(left, gone)]


def _retraction_snapshots(left: Sequence[Message], gone: Iterable[Message]) -> list[BaseEvent]:
    """Snapshots that retract messages.

    Clients ignore that reasoning is missing from a snapshot, so it becomes another kind of message first.
    """
    thoughts = [
        AssistantMessage(id=message.id, content="") for message in gone if isinstance(message, ReasoningMessage)
    ]
    first = [MessagesSnapshotEvent(messages=[*left, *thoughts])] if thoughts else []
    return [*first, MessagesSnapshotEvent(messages=list(left))]


def _render_call(state: RunState, call: TurnCall) -> Rendered:
    message_id = _message_id(state, call.step)
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
    before = _find_message(state, message_id) or AssistantMessage(id=message_id)
    made = ToolCall(id=call.id, function=FunctionCall(name=call.tool, arguments=arguments))
    message = before.model_copy(update={"tool_calls": [*(before.tool_calls or []), made]})
    return _with_message(state, message), [
        ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.tool, parent_message_id=message_id),
        ToolCallArgsEvent(tool_call_id=call.id, delta=arguments),
        ToolCallEndEvent(tool_call_id=call.id),
    ]


def _render_result(state: RunState, call: TurnCall) -> Rendered:
    content = call.result or call.status.value
    message_id = f"{call.id}-result"
    state = _with_message(state, ToolMessage(id=message_id, content=content, tool_call_id=call.id))
    if call.id in state.answered:
        return state, []
    status = {"brainq": {"status": call.status.value, "isError": call.is_error}}
    return state, [
        ToolCallResultEvent(message_id=message_id, tool_call_id=call.id, content=content, role="tool", metadata=status)
    ]


def _find_message(state: RunState, message_id: str) -> AssistantMessage | None:
    for message in state.messages:
        if message.id == message_id and isinstance(message, AssistantMessage):
            return message
    return None


def _with_message(state: RunState, message: Message) -> RunState:
    if any(other.id == message.id for other in state.messages):
        messages = tuple(message if other.id == message.id else other for other in state.messages)
    else:
        messages = (*state.messages, message)
    return replace(state, messages=messages)


def _render_end(state: RunState, event: TurnEnded) -> Rendered:
    result, events = event.result, list[BaseEvent]()
    if event.rest:
        goes_on = not event.is_new and bool(state.message_id)
        message_id = state.message_id if goes_on else f"{state.chat.turn_id}-end"
        state, events = _render_text(state, message_id, event.rest)
    state, over = _end_step(state)
    return state, [*events, *over, end_event(state.thread_id, state.run_id, result)]
