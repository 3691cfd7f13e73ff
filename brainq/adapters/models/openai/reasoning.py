"""Reasoning of chat completions, which servers send in separate fields or between `<think>` tags in the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from brainq.adapters.models.wire import replayable_reasoning
from brainq.contracts.message import Message, Reasoning
from brainq.runtime.text.surrogates import clean, clean_json

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
    """The answer and the reasoning in a text. `is_unopened` means that the opening tag never came."""

    text: str = ""
    reasoning: str = ""
    is_unopened: bool = False


class _Position(Enum):
    BEGINNING = auto()
    THOUGHT = auto()
    GAP = auto()
    ANSWER = auto()


class ThinkSplitter:
    """Separates the reasoning (`<think>...</think>`) from the answer as the text comes, wherever the tags are cut.

    A tag counts only at the beginning of a reply, because an answer may mention it. Some chat templates write the
    opening tag themselves, so that only the closing tag comes, on its own line.

    is_open: whether the template is known to write the opening tag. The reply then begins with reasoning.
    may_be_open: whether the template may do so. A closing tag on its own line then ends the reasoning. Only `whole`
        finds it, because the text before it had to be shown.
    """

    def __init__(self, *, is_open: bool = False, may_be_open: bool = False) -> None:
        self._at = _Position.THOUGHT if is_open else _Position.BEGINNING
        self._is_assumed = is_open
        self._may_be_open = may_be_open
        self._held = ""
        self._text: list[str] = []
        self._thought: list[str] = []

    def feed(self, delta: str) -> TextSplit:
        """Return the answer and the reasoning that `delta` adds."""
        held = self._held + delta
        thought = ""
        if self._at is _Position.BEGINNING:
            begins = held.lstrip()
            if OPEN.startswith(begins) and begins != OPEN:  # an incomplete tag, or nothing yet
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
        """Return the answer and the reasoning once the reply is whole."""
        text, thought = "".join(self._text), "".join(self._thought)
        match self._at:
            case _Position.BEGINNING:
                return TextSplit(self._held)
            case _Position.THOUGHT if self._is_assumed:
                return TextSplit(thought + self._held)  # This reply has no reasoning after all.
            case _Position.THOUGHT:
                return TextSplit("", thought + self._held)
            case _:
                pass
        if self._may_be_open and not thought and (closed := _CLOSED_ALONE.search(text)):
            return TextSplit(text[closed.end() :].lstrip(), text[: closed.start()], is_unopened=True)
        return TextSplit(text, thought)


def _half_tag(text: str) -> int:
    """Return how many characters at the end of the text may begin a closing tag."""
    return next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)


# OpenAI's chat completions have no field for reasoning. Other servers send it in separate fields (`reasoning_content`,
# `reasoning`, `reasoning_details`), or between tags in the text.
#
# It is sent back in its original form, with every message that made calls: some services refuse the conversation
# without it, even turns later. Reasoning before an answer need not be sent back.


def reasoning_in(message: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field and the text of a message's or a delta's reasoning, or ("", "").

    Two fields have the same text.
    """
    for name in REASONING_FIELDS:
        if isinstance(message.get(name), str) and message[name]:
            return name, message[name]
    return "", ""


class ReasoningCollector:
    """The reasoning in the fields of a reply, put together part by part."""

    def __init__(self) -> None:
        self._field = ""
        self._parts: list[str] = []
        self._details: list[dict[str, Any]] = []

    def feed(self, message: Mapping[str, Any]) -> str:
        """Return the text that a delta, or a whole message, adds."""
        name, text = reasoning_in(message)
        self._field = self._field or name
        self._parts.append(text)
        for detail in message.get(REASONING_DETAILS) or ():
            self._add_detail(detail)
        return text

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """Add a detail. A stream sends one in pieces with the same index."""
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
        """Return the reasoning. `in_tags` is the text between tags, which counts if no field has any."""
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
    """Return the message of a reply that made calls, with the reasoning of `model` for it."""
    for thought in replayable_reasoning(message, WIRE, model):
        name, details = str(thought.block.get("field") or ""), thought.block.get(REASONING_DETAILS)
        if details:
            made[REASONING_DETAILS] = details
        elif name == TAG_FIELD:
            made["content"] = f"{OPEN}{thought.text}{CLOSE}\n\n{made['content'] or ''}"
        elif name:
            made[name] = thought.text
    return made
