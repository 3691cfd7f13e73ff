"""A fold of a turn's chat events to parts, which both OpenAI wires encode. It is the same at every gateway.

A turn that requests results of the client's own tools has several **parts**. A part ends when the turn waits for the
client, and the next part begins after that. One request, or one response, is one part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat import fold as chat

SEPARATOR = "\n\n"
"""The separator between the texts of two steps, and before the text of a new attempt."""
_FINISH = {StopReason.LENGTH: "length", StopReason.MAX_TOTAL_TOKENS: "length", StopReason.FILTERED: "content_filter"}


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens of a part. `input_tokens` includes cached tokens."""

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
    """An addition to the text."""

    part: int
    text: str


@dataclass(frozen=True, slots=True)
class PartReasoning:
    """An addition to the model's reasoning. `span` counts from 1; text separates two spans."""

    part: int
    text: str
    span: int


@dataclass(frozen=True, slots=True)
class PartEnded:
    """The end of a part.

    text       the part's text without that of abandoned attempts
    thoughts   the part's spans of reasoning
    """

    part: int
    text: str
    usage: Usage
    thoughts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ToolCallsRequested(PartEnded):
    """The end of a part whose calls the client must run. `finish` is a finish_reason."""

    calls: tuple[chat.ClientCallRequested, ...]
    finish: str = "tool_calls"


@dataclass(frozen=True, slots=True)
class PartCompleted(PartEnded):
    """The end of a turn with an answer. `finish` is a finish_reason."""

    finish: str


@dataclass(frozen=True, slots=True)
class PartFailed(PartEnded):
    """The end of a turn without an answer. `ending` is `completed` if the answer does not fit its schema."""

    ending: Ending
    message: str


PartEnd = ToolCallsRequested | PartCompleted | PartFailed
PartEvent = PartStarted | PartText | PartReasoning | PartEnd


class PartFold:
    """The state of a turn after some events, and the part to which its next events belong.

    in_one_piece   True to send the text at the end, because text before an answer that fits a schema is not part of it
    parked_in      call id -> the part that ended with this call
    """

    def __init__(self, turn_id: str, part: int = 1, *, in_one_piece: bool = False) -> None:
        self.chat = chat.ChatState(turn_id)
        self.in_one_piece = in_one_piece
        self.parked_in: dict[str, int] = {}
        self._place = (0, 0)  # the newest attempt at the newest step that has text or reasoning
        self._earlier_usage = Usage()
        self._begin_part(part)

    def _begin_part(self, part: int) -> None:
        self.part = part
        self._is_begun = False
        self._new_calls: set[str] = set()  # the calls that this part will end with
        self._usage = Usage()
        self._earlier_text = ""  # text and thoughts of the part's earlier steps
        self._earlier_thoughts: tuple[str, ...] = ()
        self._span = 0  # the number of spans of reasoning that were sent
        self._begin_step()

    def _begin_step(self) -> None:
        self._text = ""  # text and thoughts of the newest attempt
        self._thoughts: tuple[str, ...] = ()
        self._sent_text = ""  # the sent text of the step, which may exceed `_text` after a new attempt began
        self._is_repeating = False  # True while a new attempt has no more text than the one before it

    @property
    def whole_text(self) -> str:
        """Return the part's text without that of abandoned attempts."""
        return _join(self._earlier_text, self._text)

    @property
    def waiting(self) -> tuple[chat.ClientCallRequested, ...]:
        """Return the client's calls that have not ended."""
        return tuple(call for call in self.chat.waiting.values() if isinstance(call, chat.ClientCallRequested))

    def read(self, event: TurnEvent, result: TurnResult | None = None) -> list[PartEvent]:
        """Return the part events of the turn's next event. The final event is ignored unless it comes with `result`."""
        parts: list[PartEvent] = [] if self._is_begun else [PartStarted(self.part, event.at_ms // 1000)]
        self._is_begun = True
        if event.is_final and result is None:
            return parts
        self.chat, chat_events = chat.fold(self.chat, event, chat.EventDetails(result=result))
        for chat_event in chat_events:
            parts += self._read(chat_event)
        return parts

    def _read(self, event: chat.ChatEvent) -> Sequence[PartEvent]:
        match event:
            case chat.TextAdded(text, step, attempt):
                self._enter_attempt((step, attempt))
                added = self._add_text(text)
                return () if self.in_one_piece else added
            case chat.ReasoningStarted():
                self._enter_attempt((self.chat.step, self.chat.attempt))
                self._thoughts, self._span = (*self._thoughts, ""), self._span + 1
            case chat.ReasoningAdded(_, text):
                self._thoughts = (*self._thoughts[:-1], self._thoughts[-1] + text)
                return [PartReasoning(self.part, text, self._span)]
            case chat.StepReset(step, attempt) if step == self._place[0]:
                self._enter_attempt((step, attempt))
            case chat.TextEnded(input_tokens, output_tokens):
                self._usage = _plus(self._usage, Usage(input_tokens, output_tokens))
            case chat.ClientCallRequested():
                self.parked_in[event.id] = self.part
                self._new_calls.add(event.id)
            case chat.OtherEvent(parked) if parked.kind is EventKind.TURN_PARKED and parked.data["awaits"] == "client":
                return self._end_part()
            case chat.TurnEnded(result):
                return self.end_turn(result)
            case _:
                pass
        return ()

    def _enter_attempt(self, place: tuple[int, int]) -> None:
        """Begin a new step, which keeps the previous step's text, or a new attempt, which replaces its text."""
        if place == self._place:
            return
        if place[0] != self._place[0]:
            self._earlier_text, self._earlier_thoughts = self.whole_text, (*self._earlier_thoughts, *self._thoughts)
            self._begin_step()
        else:
            # Sent text cannot be retracted, so only text of the new attempt that differs or follows is sent.
            self._text, self._thoughts, self._is_repeating = "", (), bool(self._sent_text)
        self._place = place

    def _add_text(self, text: str) -> list[PartEvent]:
        if not self._is_repeating:
            lead = SEPARATOR if self._earlier_text and not self._text and not self._sent_text else ""
            self._text += text
            self._sent_text += text
            return [PartText(self.part, lead + text)]
        self._text += text
        whole, sent = self._text, self._sent_text
        if sent.startswith(whole):
            return []
        self._sent_text, self._is_repeating = whole, False
        return [PartText(self.part, whole.removeprefix(sent) if whole.startswith(sent) else SEPARATOR + whole)]

    def _end_part(self) -> list[PartEvent]:
        """End the part because the turn waits for its client, unless this part has requested no call."""
        calls = self.waiting
        if self._new_calls.isdisjoint(call.id for call in calls):
            return []
        thoughts = (*self._earlier_thoughts, *self._thoughts)
        end = ToolCallsRequested(self.part, self.whole_text, self._usage, thoughts, calls)
        ended = [*self._withheld_text(), end]
        self._earlier_usage = _plus(self._earlier_usage, self._usage)
        self._begin_part(self.part + 1)
        return ended

    def end_turn(self, result: TurnResult) -> list[PartEvent]:
        """Return the last part events, made from the turn's result."""
        usage = Usage(
            max(0, result.input_tokens - self._earlier_usage.input_tokens),
            max(0, result.output_tokens - self._earlier_usage.output_tokens),
            result.cache_read_tokens if self.part == 1 else 0,
        )
        thoughts = (*self._earlier_thoughts, *self._thoughts)
        if result.ending is not Ending.COMPLETED:
            message = result.error or f"the turn ended as {result.ending} ({result.stop_reason})"
            failed = PartFailed(self.part, self.whole_text, usage, thoughts, result.ending, message)
            return [*self._withheld_text(), failed]
        text, rest = (result.text, result.text) if self.in_one_piece else self._remaining_text(result.text)
        remaining = [PartText(self.part, rest)] if rest else []
        if result.stop_reason is StopReason.INVALID_OUTPUT:
            message = result.error or "the answer does not fit its schema"
            return [*remaining, PartFailed(self.part, text, usage, thoughts, result.ending, message)]
        finish = _FINISH.get(result.stop_reason, "stop")
        return [*remaining, PartCompleted(self.part, text, usage, thoughts, finish)]

    def _withheld_text(self) -> list[PartEvent]:
        return [PartText(self.part, self.whole_text)] if self.in_one_piece and self.whole_text else []

    def _remaining_text(self, text: str) -> tuple[str, str]:
        """Return the part's whole text and its unsent rest, such as sources under the text."""
        sent = self._sent_text
        if not text or sent.startswith(text):
            return _join(self._earlier_text, text or self._text), ""
        if sent and text.startswith(sent):
            return _join(self._earlier_text, text), text.removeprefix(sent)
        return _join(self.whole_text, text), (SEPARATOR if self.whole_text or sent else "") + text


def part_of_result(turn_id: str, part: int, result: TurnResult) -> list[PartEvent]:
    """Return the last part of a turn whose events are gone, made from its result."""
    return [PartStarted(part, 0), *PartFold(turn_id, part).end_turn(result)]


def _join(earlier: str, text: str) -> str:
    return SEPARATOR.join(filter(None, (earlier, text)))


def _plus(one: Usage, other: Usage) -> Usage:
    return Usage(one.input_tokens + other.input_tokens, one.output_tokens + other.output_tokens)
