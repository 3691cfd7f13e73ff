"""From a turn's events to what OpenAI's wires tell of it. Pure: the same events come to the same words everywhere.

A turn that asks the client for results of its own tools is several **parts**: each ends where the turn waits for the
client, and the next one begins behind that. A request, or a response, is one part.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.ids import full_call_id
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult

SEPARATOR = "\n\n"
"""Stands between the texts of two steps; and before a text that had to begin anew."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of a part. `input_tokens` includes those from a cache."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A call that the client is to run. `id` is unique over all turns; `arguments` is a text of JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class PartStarted:
    """The first word of a part, with its moment in seconds."""

    part: int
    at_s: int


@dataclass(frozen=True, slots=True)
class TextAdded:
    """More text."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    """More of what the model thought. `span` counts from 1: each stretch between other words is one of its own."""

    part: int
    text: str
    span: int


@dataclass(frozen=True, slots=True)
class ToolCallsRequested:
    """The part ends: the client is to run these calls. `thoughts` are the spans that stand, as of `text`."""

    part: int
    text: str
    calls: tuple[ClientCall, ...]
    usage: Usage
    thoughts: tuple[str, ...] = ()


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
    """The part ends, and the turn with it, without an answer. `text` is what came so far: of an ending that is
    `completed`, an answer that does not fit its schema."""

    part: int
    text: str
    ending: Ending
    message: str
    usage: Usage
    thoughts: tuple[str, ...] = ()


PartEvent = PartStarted | TextAdded | ReasoningAdded | ToolCallsRequested | PartCompleted | PartFailed
PART_ENDS = (ToolCallsRequested, PartCompleted, PartFailed)
"""The words that end a part."""


@dataclass(frozen=True, slots=True)
class PartState:
    """How far a turn was emitted.

    in_one_piece   the text is emitted at the end, without what a model says before an answer that fits its schema
    earlier        the text of the part's earlier steps
    text           that of the newest attempt at the newest step, so far
    emitted        how much of that step was emitted: more than `text`, where an attempt began anew
    again          a new attempt is not yet longer than the one before it
    kept           the spans of reasoning of the part's earlier steps
    thoughts       those of the newest attempt at the newest step
    span           how many spans were emitted
    is_thinking    the last of them is open
    waiting        the client's calls that have not ended, by their ids in the turn
    parked_in      call -> the part that ended with it
    fresh          the calls that this part will end with
    """

    turn_id: str
    part: int = 1
    in_one_piece: bool = False
    is_begun: bool = False
    earlier: str = ""
    text: str = ""
    emitted: str = ""
    again: bool = False
    kept: tuple[str, ...] = ()
    thoughts: tuple[str, ...] = ()
    span: int = 0
    is_thinking: bool = False
    place: tuple[int, int] = (0, 0)
    waiting: Mapping[str, ClientCall] = field(default_factory=dict[str, ClientCall])
    parked_in: Mapping[str, int] = field(default_factory=dict[str, int])
    fresh: frozenset[str] = frozenset()
    usage: Usage = Usage()
    before: Usage = Usage()

    @property
    def whole(self) -> str:
        """The part's text, without that of a broken attempt."""
        return f"{self.earlier}{SEPARATOR}{self.text}" if self.earlier and self.text else self.earlier or self.text


def advance(
    state: PartState, event: TurnEvent, result: TurnResult | None = None
) -> tuple[PartState, tuple[PartEvent, ...]]:
    """The next state, and what it emits. `result` comes with the final event."""
    began: tuple[PartEvent, ...] = ()
    if not state.is_begun:
        state, began = replace(state, is_begun=True), (PartStarted(state.part, event.at_ms // 1000),)
    state, words = _advance(state, event, result)
    return state, began + words


def part_of_result(turn_id: str, part: int, result: TurnResult) -> tuple[PartEvent, ...]:
    """The words of a turn whose events are gone: its result, as one."""
    state = PartState(turn_id, part=part)
    return (PartStarted(part, 0), *_end_turn(state, result))


def _advance(state: PartState, event: TurnEvent, result: TurnResult | None) -> tuple[PartState, tuple[PartEvent, ...]]:
    data = event.data
    match event.kind:
        case EventKind.TEXT_DELTA:
            place = (_int(data["step"]), _int(data["attempt"]))
            state, words = _add_text(_enter_attempt(state, place), str(data["text"]))
            return state, () if state.in_one_piece else words
        case EventKind.REASONING_DELTA:
            place = (_int(data["step"]), _int(data["attempt"]))
            return _add_reasoning(_enter_attempt(state, place), str(data["text"]))
        case EventKind.STEP_STARTED if data["step"] == state.place[0]:
            return _enter_attempt(state, (state.place[0], _int(data["attempt"]))), ()
        case EventKind.STEP_ENDED:
            spent = Usage(_int(data.get("input_tokens")), _int(data.get("output_tokens")))
            return replace(state, usage=_plus(state.usage, spent)), ()
        case EventKind.CALL_PARKED if data["why"] == "client":
            call = str(data["call"])
            asked = ClientCall(full_call_id(state.turn_id, call), str(data["tool"]), str(data["arguments"]))
            return replace(
                state,
                waiting={**state.waiting, call: asked},
                parked_in={**state.parked_in, call: state.part},
                fresh=state.fresh | {call},
            ), ()
        case EventKind.CALL_ENDED:
            waiting = {call: asked for call, asked in state.waiting.items() if call != data["call"]}
            return replace(state, waiting=waiting), ()
        case EventKind.TURN_PARKED if data["awaits"] == "client" and state.fresh & set(state.waiting):
            calls = tuple(state.waiting.values())
            after = PartState(
                state.turn_id,
                part=state.part + 1,
                in_one_piece=state.in_one_piece,
                waiting=state.waiting,
                parked_in=state.parked_in,
                before=_plus(state.before, state.usage),
                place=state.place,
            )
            asked = ToolCallsRequested(state.part, state.whole, calls, state.usage, (*state.kept, *state.thoughts))
            return after, (*_withheld_text(state), asked)
        case EventKind.RESULT if result is not None:
            return state, _end_turn(state, result)
        case _:
            return state, ()


def _enter_attempt(state: PartState, place: tuple[int, int]) -> PartState:
    """At a new step the text of the one before is kept; at a new attempt that of the one before is not."""
    if place == state.place:
        return state
    if place[0] != state.place[0]:
        kept = (*state.kept, *state.thoughts)
        state = replace(state, earlier=state.whole, text="", emitted="", again=False, kept=kept)
    else:
        # Emitted text cannot be taken back: the new attempt is emitted from where it differs, or is longer.
        state = replace(state, text="", again=bool(state.emitted))
    return replace(state, thoughts=(), is_thinking=False, place=place)


def _add_reasoning(state: PartState, text: str) -> tuple[PartState, tuple[PartEvent, ...]]:
    if state.is_thinking:
        thoughts = (*state.thoughts[:-1], state.thoughts[-1] + text)
    else:
        thoughts = (*state.thoughts, text)
        state = replace(state, span=state.span + 1, is_thinking=True)
    return replace(state, thoughts=thoughts), (ReasoningAdded(state.part, text, state.span),)


def _add_text(state: PartState, text: str) -> tuple[PartState, tuple[PartEvent, ...]]:
    state = replace(state, is_thinking=False)
    whole = state.text + text
    if not state.again:
        lead = SEPARATOR if not state.text and state.earlier and not state.emitted else ""
        return replace(state, text=whole, emitted=state.emitted + text), (TextAdded(state.part, lead + text),)
    if state.emitted.startswith(whole):
        return replace(state, text=whole), ()
    if whole.startswith(state.emitted):
        more = whole[len(state.emitted) :]
        return replace(state, text=whole, emitted=whole, again=False), (TextAdded(state.part, more),)
    return replace(state, text=whole, emitted=whole, again=False), (TextAdded(state.part, SEPARATOR + whole),)


def _end_turn(state: PartState, result: TurnResult) -> tuple[PartEvent, ...]:
    total = Usage(result.input_tokens, result.output_tokens, result.cache_read_tokens)
    usage = Usage(
        max(0, total.input_tokens - state.before.input_tokens),
        max(0, total.output_tokens - state.before.output_tokens),
        total.cached_tokens if state.part == 1 else 0,
    )
    thoughts = (*state.kept, *state.thoughts)
    if result.ending is not Ending.COMPLETED:
        why = result.error or f"the turn ended as {result.ending} ({result.stop_reason})"
        return (*_withheld_text(state), PartFailed(state.part, state.whole, result.ending, why, usage, thoughts))
    if state.in_one_piece:
        state, rest = replace(state, earlier="", text=result.text), result.text
    else:
        state, rest = _remaining_text(state, result.text)
    added = (TextAdded(state.part, rest),) if rest else ()
    if result.stop_reason is StopReason.INVALID_OUTPUT:
        why = result.error or "the answer does not fit its schema"
        return (*added, PartFailed(state.part, state.whole, result.ending, why, usage, thoughts))
    finish = _FINISH.get(result.stop_reason, "stop")
    return (*added, PartCompleted(state.part, state.whole, finish, usage, thoughts))


def _withheld_text(state: PartState) -> tuple[PartEvent, ...]:
    return (TextAdded(state.part, state.whole),) if state.in_one_piece and state.whole else ()


def _remaining_text(state: PartState, text: str) -> tuple[PartState, str]:
    """What the result has that was not emitted: sources under the text, or words in place of an answer."""
    if not text or state.emitted.startswith(text):
        return replace(state, text=text or state.text), ""
    if state.emitted and text.startswith(state.emitted):
        return replace(state, text=text), text[len(state.emitted) :]
    if not state.text:
        return replace(state, text=text), SEPARATOR + text if state.earlier or state.emitted else text
    return replace(state, earlier=state.whole, text=text), SEPARATOR + text


_FINISH = {StopReason.LENGTH: "length", StopReason.MAX_TOTAL_TOKENS: "length", StopReason.FILTERED: "content_filter"}


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(
        one.input_tokens + other.input_tokens,
        one.output_tokens + other.output_tokens,
        one.cached_tokens + other.cached_tokens,
    )


def _int(value: object) -> int:
    return int(value) if isinstance(value, int | float) else 0
