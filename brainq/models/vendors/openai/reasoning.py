"""Reasoning of chat completions, which servers send in fields of their own, or between `<think>` tags in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from brainq.contracts.message import Message, Reasoning
from brainq.models.vendors.wire import replayable_reasoning
from brainq.text.surrogates import clean, clean_json

OPEN, CLOSE = "<think>", "</think>"
_CLOSED_ALONE = re.compile(r"(?:^|\n)[ \t]*</think>[ \t]*(?:\n|$)")
WIRE = "openai"
REASONING_FIELDS = ("reasoning_content", "reasoning")
REASONING_DETAILS = "reasoning_details"
REFUSABLE_FIELDS = (*REASONING_FIELDS, REASONING_DETAILS)
TAG_FIELD = "think"
_JOINED_KEYS = ("text", "summary", "data")


@dataclass(frozen=True, slots=True)
class TextSplit:
    """`is_unopened`: the opening tag never came."""

    text: str = ""
    reasoning: str = ""
    is_unopened: bool = False


class _Position(Enum):
    BEGINNING = auto()
    THOUGHT = auto()
    GAP = auto()
    ANSWER = auto()


class ThinkSplitter:
    """Parts what a model thought (`<think>...</think>`) from its answer as it comes, however the tags are cut.

    The tag counts at the beginning of a reply alone: an answer may speak of it. Some chat templates write the opening
    tag themselves, so that only the closing one comes, on a line of its own.

    is_open        the template is known to open the tag: the reply begins with what was thought
    may_be_open    it may do so: a closing tag alone on its line ends what was thought. Found by `whole` only, since
                   what came before had to be shown
    """

    def __init__(self, *, is_open: bool = False, may_be_open: bool = False) -> None:
        self._at = _Position.THOUGHT if is_open else _Position.BEGINNING
        self._is_assumed = is_open
        self._may_be_open = may_be_open
        self._held = ""
        self._text: list[str] = []
        self._thought: list[str] = []

    def feed(self, delta: str) -> TextSplit:
        """What `delta` adds to both."""
        held = self._held + delta
        thought = ""
        if self._at is _Position.BEGINNING:
            begins = held.lstrip()
            if OPEN.startswith(begins) and begins != OPEN:  # not all of it, or nothing yet
                self._held = held
                return TextSplit()
            if begins.startswith(OPEN):
                self._at, held = _Position.THOUGHT, begins[len(OPEN) :]
            else:
                self._at = _Position.ANSWER
        if self._at is _Position.THOUGHT:
            thought, close, rest = held.partition(CLOSE)
            if close:
                self._at, held = _Position.GAP, rest
            else:
                kept = _half_tag(thought)
                thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
                self._thought.append(thought)
                return TextSplit(reasoning=thought)
            self._thought.append(thought)
        if self._at is _Position.GAP:
            held = held.lstrip()
            if held:
                self._at = _Position.ANSWER
        self._held = ""
        self._text.append(held)
        return TextSplit(held, thought)

    def whole(self) -> TextSplit:
        """Both, once the reply is whole."""
        text, thought = "".join(self._text), "".join(self._thought)
        match self._at:
            case _Position.BEGINNING:
                return TextSplit(self._held)
            case _Position.THOUGHT if self._is_assumed:
                return TextSplit(thought + self._held)  # nothing was thought this time
            case _Position.THOUGHT:
                return TextSplit("", thought + self._held)
            case _:
                pass
        if self._may_be_open and not thought and (closed := _CLOSED_ALONE.search(text)):
            return TextSplit(text[closed.end() :].lstrip(), text[: closed.start()], is_unopened=True)
        return TextSplit(text, thought)


def _half_tag(text: str) -> int:
    """How many characters at its end may be the beginning of a closing tag."""
    return next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)


# Reasoning on the chat completions API, for which OpenAI's own has no place: other servers send it in fields of their
# own (`reasoning_content`, `reasoning`, `reasoning_details`), or between tags in the text.
#
# It goes back in the form it came in, with every message that asked for calls: some services refuse the conversation
# without, also turns later. Reasoning before an answer need not go back.


def reasoning_in(message: Mapping[str, Any]) -> tuple[str, str]:
    """(name of the field, text) of a message or a delta; two fields say the same. ("", "") for none."""
    for name in REASONING_FIELDS:
        if isinstance(message.get(name), str) and message[name]:
            return name, message[name]
    return "", ""


class ReasoningCollector:
    """What a reply's fields say it thought, put together."""

    def __init__(self) -> None:
        self._field = ""
        self._parts: list[str] = []
        self._details: list[dict[str, Any]] = []

    def feed(self, message: Mapping[str, Any]) -> str:
        """The text that a delta, or a whole message, adds."""
        name, text = reasoning_in(message)
        self._field = self._field or name
        self._parts.append(text)
        for detail in message.get(REASONING_DETAILS) or ():
            self._add_detail(detail)
        return text

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """A stream sends one in pieces that have its index."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(name) != detail.get(name) for name in ("type", "index")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in _JOINED_KEYS and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value

    def reasoning(self, in_tags: str = "") -> tuple[Reasoning, ...]:
        """`in_tags`: what stood between tags in the text."""
        text = clean("".join(self._parts))
        block: dict[str, Any] = {"field": self._field} if text else {}
        if self._details:
            block[REASONING_DETAILS] = clean_json(self._details)
        if block:
            return (Reasoning(wire=WIRE, text=text, block=block),)
        if in_tags.strip():
            return (Reasoning(wire=WIRE, text=in_tags, block={"field": TAG_FIELD}),)
        return ()


def with_reasoning(made: dict[str, Any], message: Message, model: str | None) -> dict[str, Any]:
    """The message of a reply that asked for calls, with what `model` thought for it."""
    for thought in replayable_reasoning(message, WIRE, model):
        name, details = str(thought.block.get("field") or ""), thought.block.get(REASONING_DETAILS)
        if details:
            made[REASONING_DETAILS] = details
        elif name == TAG_FIELD:
            made["content"] = f"{OPEN}{thought.text}{CLOSE}\n\n{made['content'] or ''}"
        elif name:
            made[name] = thought.text
    return made
