"""From a turn's chat events to events of AG-UI 1.0: pure.

Each step is an assistant message with its calls, each result a tool message. What a step said in an attempt that is
replaced is taken back by a snapshot of the messages without it. A span of reasoning is a message of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ag_ui.core import (
    PROTOCOL_VERSION,
    AssistantMessage,
    BaseEvent,
    CustomEvent,
    FunctionCall,
    Message,
    MessagesSnapshotEvent,
    ReasoningEndEvent,
    ReasoningMessage,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
    ToolCall,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
    ToolMessage,
)

from brainq.contracts.event import TurnEvent
from brainq.contracts.history import TurnCall
from brainq.http.ag_ui.endings import finished, interrupted
from brainq.http.chat_events import (
    Asked,
    Called,
    CallEnded,
    ChatEvent,
    Decided,
    Ended,
    Handed,
    Noted,
    ReasoningAdded,
    ReasoningBegan,
    ReasoningEnded,
    StepBegan,
    StepReset,
    TextAdded,
    TextEnded,
)
from brainq.http.chat_fold import ChatState, More, fold


@dataclass(frozen=True, slots=True)
class RunState:
    """What the run has told so far.

    messages    the conversation as the client has it by now
    answered    calls whose result the client has already: it is not told again
    step        the step that is open; 0: none is
    message_id  of the text that is open; empty: none is
    text        what it says so far
    """

    chat: ChatState
    thread_id: str
    run_id: str
    messages: tuple[Message, ...]
    answered: frozenset[str] = frozenset()
    step: int = 0
    message_id: str = ""
    text: str = ""


Told = tuple[RunState, list[BaseEvent]]


def begin(
    turn_id: str, thread_id: str, run_id: str, messages: Sequence[Message], answered: Iterable[str] = ()
) -> RunState:
    """`messages`: the conversation before the turn's own."""
    return RunState(ChatState(turn_id), thread_id, run_id, tuple(messages), frozenset(answered))


def opening(state: RunState, takes_back: Sequence[Message] = ()) -> list[BaseEvent]:
    """Begins a run: from the turn's beginning, or behind an interrupt, where its step goes on.

    takes_back   the messages of the turn that the client has, which will be told again
    """
    begun: list[BaseEvent] = [
        RunStartedEvent(thread_id=state.thread_id, run_id=state.run_id, protocol_version=PROTOCOL_VERSION)
    ]
    if takes_back:
        begun += _without(state.messages, takes_back)
    if state.step:
        begun.append(StepStartedEvent(step_name=_step_name(state.step)))
    return begun


def tell(state: RunState, event: TurnEvent, more: More) -> Told:
    """The state after an event, and the events of AG-UI that tell it."""
    chat, told = fold(state.chat, event, more)
    state = replace(state, chat=chat)
    events: list[BaseEvent] = []
    for chat_event in told:
        state, added = _told(state, chat_event)
        events += added
    return state, events


def rest(state: RunState) -> list[BaseEvent]:
    """Ends a run whose turn waits for whoever reads it."""
    closed, events = _step_over(state)
    return [*events, interrupted(closed.thread_id, closed.run_id, closed.chat.waiting)]


def _told(state: RunState, event: ChatEvent) -> Told:
    match event:
        case StepBegan(step):
            state, events = _step_over(state)
            return replace(state, step=step), [*events, StepStartedEvent(step_name=_step_name(step))]
        case StepReset(step):
            return _taken_back(state, _message_id(state, step))
        case TextAdded(text, step):
            return _text(state, _message_id(state, step), text)
        case TextEnded():
            return _text_over(state)
        case ReasoningBegan(span):
            return _reasoning(state, _span_id(state, span))
        case ReasoningAdded(span, text):
            return state, [ReasoningMessageContentEvent(message_id=_span_id(state, span), delta=text)]
        case ReasoningEnded(span, text):
            return _reasoning_over(state, _span_id(state, span), text)
        case Called(call):
            return _called(state, call)
        case CallEnded(call):
            return _result(state, call)
        case Ended():
            return _ended(state, event)
        case Handed(id, tool, _):
            return state, [_custom("call.handed", {"toolCallId": id, "toolCallName": tool})]
        case Asked(id, tool, reason):
            asked = {"toolCallId": id, "toolCallName": tool, "reason": reason}
            return state, [_custom("approval.requested", asked)]
        case Decided(id, _, decision, arguments):
            decided = {"toolCallId": id, "decision": decision, "editedArgs": arguments}
            return state, [_custom("approval.decided", decided)]
        case Noted(noted):
            return state, [_custom(noted.kind.value, noted.data)]


def _step_name(step: int) -> str:
    return f"step {step}"


def _message_id(state: RunState, step: int) -> str:
    return f"{state.chat.turn_id}-s{step}"


def _span_id(state: RunState, span: str) -> str:
    return f"{state.chat.turn_id}-{span}"


def _custom(kind: str, value: Any) -> CustomEvent:
    return CustomEvent(name=f"brainq.{kind}", value=value)


def _text(state: RunState, message_id: str, text: str) -> Told:
    added: list[BaseEvent] = []
    if state.message_id != message_id:
        state, added = _text_over(state)
        added.append(TextMessageStartEvent(message_id=message_id, role="assistant"))
    added.append(TextMessageContentEvent(message_id=message_id, delta=text))
    return replace(state, message_id=message_id, text=state.text + text), added


def _text_over(state: RunState) -> Told:
    if not state.message_id:
        return state, []
    said = _kept(state, AssistantMessage(id=state.message_id, content=state.text))
    return replace(said, message_id="", text=""), [TextMessageEndEvent(message_id=state.message_id)]


def _reasoning(state: RunState, message_id: str) -> Told:
    if state.message_id:  # the text's message stands before it
        state = _kept(state, AssistantMessage(id=state.message_id, content=state.text))
    return _kept(state, ReasoningMessage(id=message_id, content="")), [
        ReasoningStartEvent(message_id=message_id),
        ReasoningMessageStartEvent(message_id=message_id, role="reasoning"),
    ]


def _reasoning_over(state: RunState, message_id: str, text: str) -> Told:
    return _kept(state, ReasoningMessage(id=message_id, content=text)), [
        ReasoningMessageEndEvent(message_id=message_id),
        ReasoningEndEvent(message_id=message_id),
    ]


def _step_over(state: RunState) -> Told:
    state, events = _text_over(state)
    if state.step:
        events.append(StepFinishedEvent(step_name=_step_name(state.step)))
    return replace(state, step=0), events


def _taken_back(state: RunState, message_id: str) -> Told:
    state, events = _text_over(state)
    gone = [
        message
        for message in state.messages
        if message.id == message_id or message.id.startswith(f"{message_id}-")
    ]
    left = tuple(message for message in state.messages if message not in gone)
    return replace(state, messages=left), [*events, *_without(left, gone)]


def _without(left: Sequence[Message], gone: Iterable[Message]) -> list[BaseEvent]:
    """What takes messages back.

    A snapshot without any reasoning leaves clients what they have of it. So it is made another kind of message first.
    """
    thoughts = [
        AssistantMessage(id=message.id, content="")
        for message in gone
        if isinstance(message, ReasoningMessage)
    ]
    first = [MessagesSnapshotEvent(messages=[*left, *thoughts])] if thoughts else []
    return [*first, MessagesSnapshotEvent(messages=list(left))]


def _called(state: RunState, call: TurnCall) -> Told:
    message_id = _message_id(state, call.step)
    given = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
    before = _find(state, message_id) or AssistantMessage(id=message_id)
    made = ToolCall(id=call.id, function=FunctionCall(name=call.tool, arguments=given))
    message = before.model_copy(update={"tool_calls": [*(before.tool_calls or []), made]})
    return _kept(state, message), [
        ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.tool, parent_message_id=message_id),
        ToolCallArgsEvent(tool_call_id=call.id, delta=given),
        ToolCallEndEvent(tool_call_id=call.id),
    ]


def _result(state: RunState, call: TurnCall) -> Told:
    content = call.result or call.status.value
    message_id = f"{call.id}-result"
    state = _kept(state, ToolMessage(id=message_id, content=content, tool_call_id=call.id))
    if call.id in state.answered:
        return state, []
    status = {"brainq": {"status": call.status.value, "isError": call.is_error}}
    return state, [
        ToolCallResultEvent(
            message_id=message_id, tool_call_id=call.id, content=content, role="tool", metadata=status
        )
    ]


def _find(state: RunState, message_id: str) -> AssistantMessage | None:
    for message in state.messages:
        if message.id == message_id and isinstance(message, AssistantMessage):
            return message
    return None


def _kept(state: RunState, message: Message) -> RunState:
    if any(other.id == message.id for other in state.messages):
        kept = tuple(message if other.id == message.id else other for other in state.messages)
    else:
        kept = (*state.messages, message)
    return replace(state, messages=kept)


def _ended(state: RunState, event: Ended) -> Told:
    result, events = event.result, list[BaseEvent]()
    if event.rest:
        goes_on = not event.is_new and bool(state.message_id)
        message_id = state.message_id if goes_on else f"{state.chat.turn_id}-end"
        state, events = _text(state, message_id, event.rest)
    state, over = _step_over(state)
    return state, [*events, *over, finished(state.thread_id, state.run_id, result)]
