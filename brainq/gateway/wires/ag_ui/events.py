"""From a turn's chat events to events of AG-UI 1.0.

Each step is an assistant message with its calls, each result a tool message. The text of an attempt that is replaced
is retracted by a snapshot of the messages without it. A span of reasoning is a message of its own. A run ends with its
turn, with requests to the client, or cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
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

from brainq.contracts.history import TurnCall
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import (
    ApprovalRequested,
    ApprovalResolved,
    CallEnded,
    CallRequested,
    ChatEvent,
    ClientCallRequested,
    OtherEvent,
    ReasoningAdded,
    ReasoningEnded,
    ReasoningStarted,
    StepReset,
    StepStarted,
    TextAdded,
    TextEnded,
    TurnEnded,
)
from brainq.gateway.wires.chat.stream import ChatWire

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


class RunWriter(ChatWire[BaseEvent]):
    """Renders a turn as a run, or what follows an interrupt.

    messages     the conversation as the client has it by now; at first, before the turn's own
    answered     calls whose result the client has, so it is not sent
    takes_back   messages of the turn that the client has, which will be sent again
    """

    def __init__(
        self,
        turn_id: str,
        thread_id: str,
        run_id: str,
        messages: Iterable[Message],
        *,
        answered: Iterable[str] = (),
        takes_back: Sequence[Message] = (),
    ) -> None:
        super().__init__(turn_id)
        self._thread_id = thread_id
        self._run_id = run_id
        self._messages = {message.id: message for message in messages}
        self._answered = frozenset(answered)
        self._takes_back = takes_back
        self._step = 0  # the open one
        self._message_id = ""  # of the open text
        self._text = ""

    def encode(self, piece: BaseEvent) -> bytes:
        return piece.model_dump_json(by_alias=True).encode()

    def opening(self) -> list[BaseEvent]:
        begun: list[BaseEvent] = [
            RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=PROTOCOL_VERSION)
        ]
        if self._takes_back:
            begun += self._retraction_snapshots(self._takes_back)
        if self._step:
            begun.append(StepStartedEvent(step_name=_step_name(self._step)))
        return begun

    def rest(self) -> list[BaseEvent]:
        return [*self._closing_events(), interrupt_event(self._thread_id, self._run_id, self.chat.waiting)]

    def cut(self, why: str) -> list[BaseEvent]:
        return [RunErrorEvent(message=why, code="come_again")]

    def render(self, event: ChatEvent) -> list[BaseEvent]:
        match event:
            case StepStarted(step):
                events = self._end_step()
                self._step = step
                return [*events, StepStartedEvent(step_name=_step_name(step))]
            case StepReset(step):
                return self._retract(self._own_id(f"s{step}"))
            case TextAdded(text, step):
                return self._add_text(self._own_id(f"s{step}"), text)
            case TextEnded():
                return self._end_text()
            case ReasoningStarted(span):
                return self._start_reasoning(self._own_id(span))
            case ReasoningAdded(span, text):
                return [ReasoningMessageContentEvent(message_id=self._own_id(span), delta=text)]
            case ReasoningEnded(span, text):
                return self._end_reasoning(self._own_id(span), text)
            case CallRequested(call):
                return self._add_call(call)
            case CallEnded(call):
                return self._add_result(call)
            case TurnEnded():
                return self._end_run(event)
            case ClientCallRequested(id, tool, _):
                return [_custom("call.handed", {"toolCallId": id, "toolCallName": tool})]
            case ApprovalRequested(id, tool, reason):
                return [_custom("approval.requested", {"toolCallId": id, "toolCallName": tool, "reason": reason})]
            case ApprovalResolved(id, _, decision, arguments):
                decided = {"toolCallId": id, "decision": decision, "editedArgs": arguments}
                return [_custom("approval.decided", decided)]
            case OtherEvent(noted):
                return [_custom(noted.kind.value, noted.data)]

    def _own_id(self, name: str) -> str:
        return f"{self.chat.turn_id}-{name}"

    def _set_message(self, message: Message) -> None:
        self._messages[message.id] = message

    def _add_text(self, message_id: str, text: str) -> list[BaseEvent]:
        added: list[BaseEvent] = []
        if self._message_id != message_id:
            added = [*self._end_text(), TextMessageStartEvent(message_id=message_id, role="assistant")]
            self._message_id = message_id
        self._text += text
        return [*added, TextMessageContentEvent(message_id=message_id, delta=text)]

    def _end_text(self) -> list[BaseEvent]:
        if not self._message_id:
            return []
        message_id, text = self._message_id, self._text
        self._message_id, self._text = "", ""
        self._set_message(AssistantMessage(id=message_id, content=text))
        return [TextMessageEndEvent(message_id=message_id)]

    def _start_reasoning(self, message_id: str) -> list[BaseEvent]:
        if self._message_id:  # the text's message comes before it
            self._set_message(AssistantMessage(id=self._message_id, content=self._text))
        self._set_message(ReasoningMessage(id=message_id, content=""))
        return [
            ReasoningStartEvent(message_id=message_id),
            ReasoningMessageStartEvent(message_id=message_id, role="reasoning"),
        ]

    def _end_reasoning(self, message_id: str, text: str) -> list[BaseEvent]:
        self._set_message(ReasoningMessage(id=message_id, content=text))
        return [ReasoningMessageEndEvent(message_id=message_id), ReasoningEndEvent(message_id=message_id)]

    def _closing_events(self) -> list[BaseEvent]:
        """Those that end the open text and the open step."""
        text: list[BaseEvent] = [TextMessageEndEvent(message_id=self._message_id)] if self._message_id else []
        return [*text, StepFinishedEvent(step_name=_step_name(self._step))] if self._step else text

    def _end_step(self) -> list[BaseEvent]:
        events = self._closing_events()
        self._end_text()
        self._step = 0
        return events

    def _retract(self, message_id: str) -> list[BaseEvent]:
        events = self._end_text()
        gone = [
            message
            for message in self._messages.values()
            if message.id == message_id or message.id.startswith(f"{message_id}-")
        ]
        for message in gone:
            del self._messages[message.id]
        return [*events, *self._retraction_snapshots(gone)]

    def _retraction_snapshots(self, gone: Iterable[Message]) -> list[BaseEvent]:
        """Snapshots without messages that are retracted.

        Clients ignore that reasoning is missing from a snapshot, so it becomes another kind of message first.
        """
        left = list(self._messages.values())
        thoughts = [
            AssistantMessage(id=message.id, content="") for message in gone if isinstance(message, ReasoningMessage)
        ]
        first = [MessagesSnapshotEvent(messages=[*left, *thoughts])] if thoughts else []
        return [*first, MessagesSnapshotEvent(messages=left)]

    def _add_call(self, call: TurnCall) -> list[BaseEvent]:
        message_id = self._own_id(f"s{call.step}")
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
        known = self._messages.get(message_id)
        before = known if isinstance(known, AssistantMessage) else AssistantMessage(id=message_id)
        made = ToolCall(id=call.id, function=FunctionCall(name=call.tool, arguments=arguments))
        self._set_message(before.model_copy(update={"tool_calls": [*(before.tool_calls or []), made]}))
        return [
            ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.tool, parent_message_id=message_id),
            ToolCallArgsEvent(tool_call_id=call.id, delta=arguments),
            ToolCallEndEvent(tool_call_id=call.id),
        ]

    def _add_result(self, call: TurnCall) -> list[BaseEvent]:
        content = call.result or call.status.value
        message_id = f"{call.id}-result"
        self._set_message(ToolMessage(id=message_id, content=content, tool_call_id=call.id))
        if call.id in self._answered:
            return []
        status = {"brainq": {"status": call.status.value, "isError": call.is_error}}
        return [
            ToolCallResultEvent(
                message_id=message_id, tool_call_id=call.id, content=content, role="tool", metadata=status
            )
        ]

    def _end_run(self, event: TurnEnded) -> list[BaseEvent]:
        events: list[BaseEvent] = []
        if event.rest:
            goes_on = not event.is_new and bool(self._message_id)
            events = self._add_text(self._message_id if goes_on else self._own_id("end"), event.rest)
        return [*events, *self._end_step(), end_event(self._thread_id, self._run_id, event.result)]


def _step_name(step: int) -> str:
    return f"step {step}"


def _custom(kind: str, value: Any) -> CustomEvent:
    return CustomEvent(name=f"brainq.{kind}", value=value)
