"""A turn as a chat: a pure fold from the turn's numbered events to chat events, which each wire encodes.

Events contain no arguments and no results, so these are passed in as EventDetails. The same events and details give
the same chat at every gateway, so any gateway can continue a stream after any event.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import full_call_id
from brainq.contracts.turn import TurnResult


@dataclass(frozen=True, slots=True)
class StepStarted:
    """A model call begins."""

    step: int


@dataclass(frozen=True, slots=True)
class StepReset:
    """The step is attempted again, which replaces its text so far."""

    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    text: str
    step: int
    attempt: int


@dataclass(frozen=True, slots=True)
class TextEnded:
    """The reply's text is complete, and its calls follow. The tokens are those of the step."""

    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class ReasoningStarted:
    """A span of the model's reasoning begins. `id` identifies the span in the turn."""

    id: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    id: str
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningEnded:
    """A span of reasoning is complete. `text` is the whole span."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class CallRequested:
    """The reply requests a call. Only the id, tool and arguments of `call` are final."""

    call: TurnCall


@dataclass(frozen=True, slots=True)
class ClientCallRequested:
    """The client must now run a call of its own tool. `id` is unique over all turns; `arguments` is JSON text."""

    id: str
    tool: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ApprovalRequested:
    """A call needs an approval. Call and approval share the `id`, which is unique over all turns."""

    id: str
    tool: str
    reason: str
    expires_at_ms: int


@dataclass(frozen=True, slots=True)
class ApprovalResolved:
    """An approval was decided. `arguments` replace the model's, or are None if a person did not change them."""

    id: str
    tool: str
    decision: str
    arguments: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class CallEnded:
    call: TurnCall


@dataclass(frozen=True, slots=True)
class OtherEvent:
    """An event that has no special meaning in chats."""

    event: TurnEvent


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn has ended.

    rest     the part of the answer that was not sent yet
    is_new   True if `rest` is a separate text that does not continue the last one
    """

    result: TurnResult
    rest: str
    is_new: bool


ChatEvent = (
    StepStarted
    | StepReset
    | TextAdded
    | TextEnded
    | ReasoningStarted
    | ReasoningAdded
    | ReasoningEnded
    | CallRequested
    | ClientCallRequested
    | ApprovalRequested
    | ApprovalResolved
    | CallEnded
    | OtherEvent
    | TurnEnded
)


ReaderRequest = ApprovalRequested | ClientCallRequested
"""A request that only the reader can answer."""


@dataclass(frozen=True, slots=True)
class EventDetails:
    """Details that the event itself does not contain.

    calls      for `step.ended`, the calls that the reply requests; for `call.ended`, that call
    arguments  for `approval.decided`, the arguments that a person put in place of the model's
    result     for `result`, the turn's result
    """

    calls: tuple[TurnCall, ...] = ()
    arguments: dict[str, Any] | None = None
    result: TurnResult | None = None


@dataclass(frozen=True, slots=True)
class ChatState:
    """The state of a chat after some events.

    step, attempt  the step and attempt whose text is being added
    text           the text of this attempt
    spans          the number of spans of reasoning in this attempt
    reasoning      the text of the open span, or "" if none is open
    is_replied     True once the step's reply is complete and its calls are known
    tools          the tools of the step's calls, by call id
    waiting        the requests that the reader can answer, by call id: approvals and calls of the client's tools
    is_parked      True while the turn waits for input from outside
    """

    turn_id: str
    step: int = 0
    attempt: int = 0
    text: str = ""
    spans: int = 0
    reasoning: str = ""
    is_replied: bool = False
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    waiting: Mapping[str, ReaderRequest] = field(default_factory=dict[str, ReaderRequest])
    is_parked: bool = False

    @property
    def waits_for_reader(self) -> bool:
        """Return whether the turn is parked until the reader decides or gives a result."""
        return self.is_parked and bool(self.waiting)


Folded = tuple[ChatState, tuple[ChatEvent, ...]]


def fold(state: ChatState, event: TurnEvent, more: EventDetails) -> Folded:
    """Return the state after an event, and the event's chat events."""
    data: dict[str, Any] = cast("dict[str, Any]", event.data)
    match event.kind:
        case EventKind.STEP_STARTED:
            return _start_step(state, data["step"], data["attempt"])
        case EventKind.TEXT_DELTA:
            return _add_text(state, data["step"], data["attempt"], data["text"])
        case EventKind.REASONING_DELTA:
            return _add_reasoning(state, data["step"], data["attempt"], data["text"])
        case EventKind.APPROVAL_REQUESTED:
            ask = ApprovalRequested(
                full_call_id(state.turn_id, data["call"]),
                data["tool"],
                data["reason"],
                event.at_ms + int(data["expires_in_ms"]),
            )
            return replace(state, waiting={**state.waiting, ask.id: ask}), ()
        case EventKind.STEP_ENDED:
            return _end_step(state, data, more.calls)
        case EventKind.APPROVAL_DECIDED:
            call_id = full_call_id(state.turn_id, data["call"])
            decided = ApprovalResolved(call_id, state.tools.get(call_id, ""), data["decision"], more.arguments)
            return replace(state, waiting=_without(state.waiting, call_id)), (decided,)
        case EventKind.CALL_PARKED if data["why"] == "client":
            call_id = full_call_id(state.turn_id, data["call"])
            handed = ClientCallRequested(call_id, data["tool"], data["arguments"])
            return replace(state, waiting={**state.waiting, call_id: handed}), (handed,)
        case EventKind.CALL_ENDED:
            return _end_call(state, full_call_id(state.turn_id, data["call"]), more.calls)
        case EventKind.TURN_PARKED:
            return replace(state, is_parked=True), (OtherEvent(event),)
        case EventKind.TURN_RESUMED:
            return replace(state, is_parked=False), (OtherEvent(event),)
        case EventKind.RESULT:
            state, over = _end_reasoning(state)
            return state, (*over, _end_turn(state, more.result))
        case _:
            return state, (OtherEvent(event),)


def _start_step(state: ChatState, step: int, attempt: int) -> Folded:
    state, over = _end_reasoning(state)
    began = replace(state, step=step, attempt=attempt, text="", spans=0, is_replied=False)
    if step != state.step:
        return began, (*over, StepStarted(step))
    return began, (*over, StepReset(step, attempt)) if state.text or state.spans else ()


def _add_text(state: ChatState, step: int, attempt: int, text: str) -> Folded:
    state, added = _enter_attempt(state, step, attempt)
    state, over = _end_reasoning(state)
    return replace(state, text=state.text + text), (*added, *over, TextAdded(text, step, attempt))


def _add_reasoning(state: ChatState, step: int, attempt: int, text: str) -> Folded:
    state, added = _enter_attempt(state, step, attempt)
    if not state.reasoning:
        state = replace(state, spans=state.spans + 1)
        added = (*added, ReasoningStarted(_span_id(state)))
    return replace(state, reasoning=state.reasoning + text), (*added, ReasoningAdded(_span_id(state), text))


def _end_reasoning(state: ChatState) -> Folded:
    if not state.reasoning:
        return state, ()
    return replace(state, reasoning=""), (ReasoningEnded(_span_id(state), state.reasoning),)


def _span_id(state: ChatState) -> str:
    return f"s{state.step}-a{state.attempt}-r{state.spans}"


def _enter_attempt(state: ChatState, step: int, attempt: int) -> Folded:
    if (step, attempt) == (state.step, state.attempt):
        return state, ()
    return _start_step(state, step, attempt)


def _end_step(state: ChatState, data: Mapping[str, Any], calls: tuple[TurnCall, ...]) -> Folded:
    state, over = _end_reasoning(state)
    tokens = (int(data.get("input_tokens") or 0), int(data.get("output_tokens") or 0))
    chat_events: list[ChatEvent] = [*over, TextEnded(*tokens)]
    for call in calls:
        chat_events.append(CallRequested(call))
        if isinstance(approval := state.waiting.get(call.id), ApprovalRequested):
            chat_events.append(approval)
    return replace(state, is_replied=True, tools={call.id: call.tool for call in calls}), tuple(chat_events)


def _end_call(state: ChatState, call_id: str, calls: tuple[TurnCall, ...]) -> Folded:
    ended = tuple(CallEnded(call) for call in calls if call.id in state.tools)
    return replace(state, waiting=_without(state.waiting, call_id)), ended


def _without(waiting: Mapping[str, ReaderRequest], call_id: str) -> Mapping[str, ReaderRequest]:
    return {other: wanted for other, wanted in waiting.items() if other != call_id}


def _end_turn(state: ChatState, result: TurnResult | None) -> TurnEnded:
    if result is None:
        raise ValueError("the final event has no result")
    goes_on = bool(state.text) and not state.is_replied and result.text.startswith(state.text)
    rest = result.text.removeprefix(state.text) if goes_on else result.text
    return TurnEnded(result, rest, not goes_on)
