"""A fold of a turn's chat events to events of AG-UI 1.0.

Each step is an assistant message with its calls, each result a tool message, and each span of reasoning a message. The
text of a replaced attempt is retracted by a snapshot of the messages without it. A run ends with its turn, with
requests to the client, or when it is cut off.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import ag_ui.core as ag

from brainq.contracts.history import TurnCall
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat import fold as chat
from brainq.gateway.wires.chat.stream import ChatWire

DECISION_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {"type": "object", "description": "Arguments in place of the model's, all of them."},
        "reason": {"type": "string", "description": "The reason for a denial; the model reads it."},
    },
    "required": ["approved"],
}
"""The schema of an answer to an approval."""


def interrupt_event(thread_id: str, run_id: str, waiting: Mapping[str, chat.ReaderRequest]) -> ag.BaseEvent:
    """Return the end of a run whose turn waits for approvals or for results of the client's own tools."""
    interrupts = [_interrupt(ask) for ask in waiting.values() if isinstance(ask, chat.ApprovalRequested)]
    outcome = (
        ag.RunFinishedInterruptOutcome(interrupts=interrupts)
        if interrupts
        else ag.RunFinishedSuccessOutcome(pending_tool_call_ids=list(waiting))
    )
    return ag.RunFinishedEvent(thread_id=thread_id, run_id=run_id, outcome=outcome)


def end_event(thread_id: str, run_id: str, result: TurnResult) -> ag.BaseEvent:
    """Return the end of a run whose turn has ended."""
    usage = _usage(result)
    if result.ending is Ending.FAILED or result.stop_reason is StopReason.INVALID_OUTPUT:
        return ag.RunErrorEvent(message=result.error or "the turn failed", code=result.stop_reason.value, usage=usage)
    outcome = (
        ag.RunFinishedCancelledOutcome()
        if result.ending is Ending.CANCELLED
        else ag.RunFinishedSuccessOutcome(pending_tool_call_ids=[])
    )
    return ag.RunFinishedEvent(
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


def _usage(result: TurnResult) -> list[ag.TokenUsage]:
    """Return the usage of each model."""
    models = list(dict.fromkeys(spend.model for spend in result.spends))
    return [
        ag.TokenUsage(
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


def _interrupt(ask: chat.ApprovalRequested) -> ag.Interrupt:
    expires = datetime.fromtimestamp(ask.expires_at_ms / 1000, UTC)
    return ag.Interrupt(
        id=ask.id,
        reason="tool_call",
        message=ask.reason or f"{ask.tool} needs an approval",
        tool_call_id=ask.id,
        response_schema=DECISION_SCHEMA,
        expires_at=expires.isoformat(timespec="milliseconds"),
    )


class RunWriter(ChatWire[ag.BaseEvent]):
    """A wire that renders a turn as a run, or as the run after an interrupt.

    messages     the client's conversation before the turn's own messages
    answered     the calls whose results the client has, so they are not sent
    takes_back   the turn's messages that the client has, which will be sent again
    """

    def __init__(
        self,
        turn_id: str,
        thread_id: str,
        run_id: str,
        messages: Iterable[ag.Message],
        *,
        answered: Iterable[str] = (),
        takes_back: Sequence[ag.Message] = (),
    ) -> None:
        super().__init__(turn_id)
        self._thread_id = thread_id
        self._run_id = run_id
        self._messages = {message.id: message for message in messages}
        self._answered = frozenset(answered)
        self._takes_back = takes_back
        self._step = 0  # the open step
        self._message_id = ""  # the id of the open text
        self._text = ""

    def encode(self, piece: ag.BaseEvent) -> bytes:
        return piece.model_dump_json(by_alias=True).encode()

    def opening(self) -> list[ag.BaseEvent]:
        begun: list[ag.BaseEvent] = [
            ag.RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, protocol_version=ag.PROTOCOL_VERSION)
        ]
        if self._takes_back:
            begun += self._retraction_snapshots(self._takes_back)
        if self._step:
            begun.append(ag.StepStartedEvent(step_name=_step_name(self._step)))
        return begun

    def rest(self) -> list[ag.BaseEvent]:
        return [*self._closing_events(), interrupt_event(self._thread_id, self._run_id, self.chat.waiting)]

    def cut(self, why: str) -> list[ag.BaseEvent]:
        return [ag.RunErrorEvent(message=why, code="come_again")]

    def render(self, event: chat.ChatEvent) -> list[ag.BaseEvent]:
        match event:
            case chat.StepStarted(step):
                events = self._end_step()
                self._step = step
                return [*events, ag.StepStartedEvent(step_name=_step_name(step))]
            case chat.StepReset(step):
                return self._retract(self._own_id(f"s{step}"))
            case chat.TextAdded(text, step):
                return self._add_text(self._own_id(f"s{step}"), text)
            case chat.TextEnded():
                return self._end_text()
            case chat.ReasoningStarted(span):
                return self._start_reasoning(self._own_id(span))
            case chat.ReasoningAdded(span, text):
                return [ag.ReasoningMessageContentEvent(message_id=self._own_id(span), delta=text)]
            case chat.ReasoningEnded(span, text):
                return self._end_reasoning(self._own_id(span), text)
            case chat.CallRequested(call):
                return self._add_call(call)
            case chat.CallEnded(call):
                return self._add_result(call)
            case chat.TurnEnded():
                return self._end_run(event)
            case chat.ClientCallRequested(id, tool, _):
                return [_custom("call.handed", {"toolCallId": id, "toolCallName": tool})]
            case chat.ApprovalRequested(id, tool, reason):
                return [_custom("approval.requested", {"toolCallId": id, "toolCallName": tool, "reason": reason})]
            case chat.ApprovalResolved(id, _, decision, arguments):
                decided = {"toolCallId": id, "decision": decision, "editedArgs": arguments}
                return [_custom("approval.decided", decided)]
            case chat.OtherEvent(noted):
                return [_custom(noted.kind.value, noted.data)]

    def _own_id(self, name: str) -> str:
        return f"{self.chat.turn_id}-{name}"

    def _set_message(self, message: ag.Message) -> None:
        self._messages[message.id] = message

    def _add_text(self, message_id: str, text: str) -> list[ag.BaseEvent]:
        added: list[ag.BaseEvent] = []
        if self._message_id != message_id:
            added = [*self._end_text(), ag.TextMessageStartEvent(message_id=message_id, role="assistant")]
            self._message_id = message_id
        self._text += text
        return [*added, ag.TextMessageContentEvent(message_id=message_id, delta=text)]

    def _end_text(self) -> list[ag.BaseEvent]:
        if not self._message_id:
            return []
        message_id, text = self._message_id, self._text
        self._message_id, self._text = "", ""
        self._set_message(ag.AssistantMessage(id=message_id, content=text))
        return [ag.TextMessageEndEvent(message_id=message_id)]

    def _start_reasoning(self, message_id: str) -> list[ag.BaseEvent]:
        if self._message_id:  # the text's message comes before it
            self._set_message(ag.AssistantMessage(id=self._message_id, content=self._text))
        self._set_message(ag.ReasoningMessage(id=message_id, content=""))
        return [
            ag.ReasoningStartEvent(message_id=message_id),
            ag.ReasoningMessageStartEvent(message_id=message_id, role="reasoning"),
        ]

    def _end_reasoning(self, message_id: str, text: str) -> list[ag.BaseEvent]:
        self._set_message(ag.ReasoningMessage(id=message_id, content=text))
        return [ag.ReasoningMessageEndEvent(message_id=message_id), ag.ReasoningEndEvent(message_id=message_id)]

    def _closing_events(self) -> list[ag.BaseEvent]:
        """Return the events that end the open text and the open step."""
        text: list[ag.BaseEvent] = [ag.TextMessageEndEvent(message_id=self._message_id)] if self._message_id else []
        return [*text, ag.StepFinishedEvent(step_name=_step_name(self._step))] if self._step else text

    def _end_step(self) -> list[ag.BaseEvent]:
        events = self._closing_events()
        self._end_text()
        self._step = 0
        return events

    def _retract(self, message_id: str) -> list[ag.BaseEvent]:
        events = self._end_text()
        gone = [
            message
            for message in self._messages.values()
            if message.id == message_id or message.id.startswith(f"{message_id}-")
        ]
        for message in gone:
            del self._messages[message.id]
        return [*events, *self._retraction_snapshots(gone)]

    def _retraction_snapshots(self, gone: Iterable[ag.Message]) -> list[ag.BaseEvent]:
        """Return snapshots without the retracted messages.

        Clients do not remove reasoning that is missing from a snapshot, so it first becomes another kind of message.
        """
        left = list(self._messages.values())
        thoughts = [
            ag.AssistantMessage(id=message.id, content="")
            for message in gone
            if isinstance(message, ag.ReasoningMessage)
        ]
        first = [ag.MessagesSnapshotEvent(messages=[*left, *thoughts])] if thoughts else []
        return [*first, ag.MessagesSnapshotEvent(messages=left)]

    def _add_call(self, call: TurnCall) -> list[ag.BaseEvent]:
        message_id = self._own_id(f"s{call.step}")
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments or {})
        known = self._messages.get(message_id)
        before = known if isinstance(known, ag.AssistantMessage) else ag.AssistantMessage(id=message_id)
        made = ag.ToolCall(id=call.id, function=ag.FunctionCall(name=call.tool, arguments=arguments))
        self._set_message(before.model_copy(update={"tool_calls": [*(before.tool_calls or []), made]}))
        return [
            ag.ToolCallStartEvent(tool_call_id=call.id, tool_call_name=call.tool, parent_message_id=message_id),
            ag.ToolCallArgsEvent(tool_call_id=call.id, delta=arguments),
            ag.ToolCallEndEvent(tool_call_id=call.id),
        ]

    def _add_result(self, call: TurnCall) -> list[ag.BaseEvent]:
        content = call.result or call.status.value
        message_id = f"{call.id}-result"
        self._set_message(ag.ToolMessage(id=message_id, content=content, tool_call_id=call.id))
        if call.id in self._answered:
            return []
        status = {"brainq": {"status": call.status.value, "isError": call.is_error}}
        return [
            ag.ToolCallResultEvent(
                message_id=message_id, tool_call_id=call.id, content=content, role="tool", metadata=status
            )
        ]

    def _end_run(self, event: chat.TurnEnded) -> list[ag.BaseEvent]:
        events: list[ag.BaseEvent] = []
        if event.rest:
            goes_on = not event.is_new and bool(self._message_id)
            events = self._add_text(self._message_id if goes_on else self._own_id("end"), event.rest)
        return [*events, *self._end_step(), end_event(self._thread_id, self._run_id, event.result)]


def _step_name(step: int) -> str:
    return f"step {step}"


def _custom(kind: str, value: Any) -> ag.CustomEvent:
    return ag.CustomEvent(name=f"brainq.{kind}", value=value)
