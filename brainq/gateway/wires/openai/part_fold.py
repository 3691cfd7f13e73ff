"""From a turn's chat events to parts, which both OpenAI wires encode. A pure fold, the same at every gateway.

A turn that requests results of the client's own tools has several **parts**. Each ends where the turn waits for the
client, and the next one begins after that. A request, or a response, is one part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import (
    ChatEvent,
    ChatState,
    ClientCallRequested,
    EventDetails,
    OtherEvent,
    ReasoningAdded,
    ReasoningStarted,
    StepReset,
    TextAdded,
    TextEnded,
    TurnEnded,
    fold,
)

SEPARATOR = "\n\n"
"""Between the texts of two steps; and before a text that had to begin anew."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a part. `input_tokens` includes those from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PartStarted:
    """The first event of a part, with its time in seconds."""

    part: int
    at_s: int


@dataclass(frozen=True, slots=True)
class PartText:
    """More text."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class PartReasoning:
    """More of the model's reasoning. `span` counts from 1: text between two stretches separates them."""

    part: int
    text: str
    span: int


@dataclass(frozen=True, slots=True)
class ToolCallsRequested:
    """The part ends: the client is to run these calls. `thoughts` are the spans of reasoning that belong to `text`."""

    part: int
    text: str
    calls: tuple[ClientCallRequested, ...]
    usage: Usage
    thoughts: tuple[str, ...] = ()
    finish: str = "tool_calls"


@dataclass(frozen=True, slots=True)
class PartCompleted:
    """The part ends, and the turn with it. `finish` is a finish_reason."""

    part: int
    text: str
    finish: str
    usage: Usage
    thoughts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PartFailed:
    """The part ends, and the turn with it, without an answer. `text` is the text so far. The `ending` is `completed`
    where the answer does not fit its schema."""

    part: int
    text: str
    ending: Ending
    message: str
    usage: Usage
    thoughts: tuple[str, ...] = ()


PartEnd = ToolCallsRequested | PartCompleted | PartFailed
PartEvent = PartStarted | PartText | PartReasoning | PartEnd
PART_ENDS = (ToolCallsRequested, PartCompleted, PartFailed)
"""The events that end a part."""


@dataclass(frozen=True, slots=True)
class PartState:
    """A turn so far, and the part that its next events belong to.

    in_one_piece      the text is sent at the end: text before an answer that fits its schema is not part of it
    earlier_text      of the part's earlier steps
    text              of the newest attempt at the newest step that has text or reasoning, `place`
    sent_text         what readers have of that step; more than `text`, where an attempt began anew
    is_repeating      a new attempt has not yet more text than the one before it
    earlier_thoughts  the spans of reasoning of the part's earlier steps
    thoughts          those of the newest attempt
    span              how many spans readers have
    parked_in         call id -> the part that ended with it
    new_calls         the calls that this part will end with
    """

    chat: ChatState
    part: int = 1
    in_one_piece: bool = False
    is_begun: bool = False
    place: tuple[int, int] = (0, 0)
    earlier_text: str = ""
    text: str = ""
    sent_text: str = ""
    is_repeating: bool = False
    earlier_thoughts: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    span: int = 0
    parked_in: Mapping[str, int] = field(default_factory=dict[str, int])
    new_calls: frozenset[str] = frozenset()
    usage: Usage = Usage()
    earlier_usage: Usage = Usage()

    @property
    def whole_text(self) -> str:
        """The part's text, without that of a broken attempt."""
        return SEPARATOR.join(filter(None, (self.earlier_text, self.text)))

    @property
    def whole_thoughts(self) -> tuple[str, ...]:
        return (*self.earlier_thoughts, *self.thoughts)

    @property
    def waiting(self) -> tuple[ClientCallRequested, ...]:
        """The client's calls that have not ended."""
        return tuple(call for call in self.chat.waiting.values() if isinstance(call, ClientCallRequested))


Folded = tuple[PartState, tuple[PartEvent, ...]]


def initial_state(turn_id: str, part: int = 1, *, in_one_piece: bool = False) -> PartState:
    return PartState(ChatState(turn_id), part, in_one_piece)


def advance(state: PartState, event: TurnEvent, result: TurnResult | None = None) -> Folded:
    """The next state, and the event's part events. `result` comes with the final event, which is ignored without it."""
    parts: tuple[PartEvent, ...] = () if state.is_begun else (PartStarted(state.part, event.at_ms // 1000),)
    state = replace(state, is_begun=True)
    if event.is_final and result is None:
        return state, parts
    chat, chat_events = fold(state.chat, event, EventDetails(result=result))
    state = replace(state, chat=chat)
    for chat_event in chat_events:
        state, added = _advance(state, chat_event)
        parts += added
    return state, parts


def part_of_result(turn_id: str, part: int, result: TurnResult) -> tuple[PartEvent, ...]:
    """The last part of a turn whose events are gone, from its result."""
    return (PartStarted(part, 0), *_end_turn(initial_state(turn_id, part), result))


def _advance(state: PartState, event: ChatEvent) -> Folded:
    match event:
        case TextAdded(text, step, attempt):
            state, added = _add_text(_enter_attempt(state, (step, attempt)), text)
            return state, () if state.in_one_piece else added
        case ReasoningStarted():
            state = _enter_attempt(state, (state.chat.step, state.chat.attempt))
            return replace(state, thoughts=(*state.thoughts, ""), span=state.span + 1), ()
        case ReasoningAdded(_, text):
            thoughts = (*state.thoughts[:-1], state.thoughts[-1] + text)
            return replace(state, thoughts=thoughts), (PartReasoning(state.part, text, state.span),)
        case StepReset(step, attempt) if step == state.place[0]:
            return _enter_attempt(state, (step, attempt)), ()
        case TextEnded(input_tokens, output_tokens):
            return replace(state, usage=_plus(state.usage, Usage(input_tokens, output_tokens))), ()
        case ClientCallRequested():
            parked_in = {**state.parked_in, event.id: state.part}
            return replace(state, parked_in=parked_in, new_calls=state.new_calls | {event.id}), ()
        case OtherEvent(parked) if parked.kind is EventKind.TURN_PARKED and parked.data["awaits"] == "client":
            return _end_part(state)
        case TurnEnded(result):
            return state, _end_turn(state, result)
        case _:
            return state, ()


def _enter_attempt(state: PartState, place: tuple[int, int]) -> PartState:
    """A new step keeps the text of the one before; a new attempt replaces it."""
    if place == state.place:
        return state
    if place[0] != state.place[0]:
        state = replace(
            state,
            earlier_text=state.whole_text,
            earlier_thoughts=state.whole_thoughts,
            text="",
            sent_text="",
            is_repeating=False,
        )
    else:
        # Sent text cannot be retracted: of the new attempt only the text that differs, or follows, is sent.
        state = replace(state, text="", is_repeating=bool(state.sent_text))
    return replace(state, thoughts=(), place=place)


def _add_text(state: PartState, text: str) -> Folded:
    whole = state.text + text
    if not state.is_repeating:
        lead = SEPARATOR if state.earlier_text and not state.text and not state.sent_text else ""
        return replace(state, text=whole, sent_text=state.sent_text + text), (PartText(state.part, lead + text),)
    if state.sent_text.startswith(whole):
        return replace(state, text=whole), ()
    rest = whole.removeprefix(state.sent_text) if whole.startswith(state.sent_text) else SEPARATOR + whole
    return replace(state, text=whole, sent_text=whole, is_repeating=False), (PartText(state.part, rest),)


def _end_part(state: PartState) -> Folded:
    """The turn waits for its client: the part ends, unless it has requested no call since the last one."""
    calls = state.waiting
    if state.new_calls.isdisjoint(call.id for call in calls):
        return state, ()
    following = PartState(
        state.chat,
        state.part + 1,
        state.in_one_piece,
        place=state.place,
        parked_in=state.parked_in,
        earlier_usage=_plus(state.earlier_usage, state.usage),
    )
    end = ToolCallsRequested(state.part, state.whole_text, calls, state.usage, state.whole_thoughts)
    return following, (*_withheld_text(state), end)


def _end_turn(state: PartState, result: TurnResult) -> tuple[PartEvent, ...]:
    usage = Usage(
        max(0, result.input_tokens - state.earlier_usage.input_tokens),
        max(0, result.output_tokens - state.earlier_usage.output_tokens),
        result.cache_read_tokens if state.part == 1 else 0,
    )
    thoughts = state.whole_thoughts
    if result.ending is not Ending.COMPLETED:
        message = result.error or f"the turn ended as {result.ending} ({result.stop_reason})"
        failed = PartFailed(state.part, state.whole_text, result.ending, message, usage, thoughts)
        return (*_withheld_text(state), failed)
    text, rest = (result.text, result.text) if state.in_one_piece else _remaining_text(state, result.text)
    remaining = (PartText(state.part, rest),) if rest else ()
    if result.stop_reason is StopReason.INVALID_OUTPUT:
        message = result.error or "the answer does not fit its schema"
        return (*remaining, PartFailed(state.part, text, result.ending, message, usage, thoughts))
    finish = _FINISH.get(result.stop_reason, "stop")
    return (*remaining, PartCompleted(state.part, text, finish, usage, thoughts))


def _withheld_text(state: PartState) -> tuple[PartEvent, ...]:
    return (PartText(state.part, state.whole_text),) if state.in_one_piece and state.whole_text else ()


def _remaining_text(state: PartState, text: str) -> tuple[str, str]:
    """The part's whole text, and what of it was not sent: sources under the text, or a text in place of an answer."""
    if not text or state.sent_text.startswith(text):
        return replace(state, text=text or state.text).whole_text, ""
    if state.sent_text and text.startswith(state.sent_text):
        return replace(state, text=text).whole_text, text.removeprefix(state.sent_text)
    lead = SEPARATOR if state.whole_text or state.sent_text else ""
    return SEPARATOR.join(filter(None, (state.whole_text, text))), lead + text


_FINISH = {StopReason.LENGTH: "length", StopReason.MAX_TOTAL_TOKENS: "length", StopReason.FILTERED: "content_filter"}


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens)
