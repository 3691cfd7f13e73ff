"""Reasoning on the chat completions API, for which OpenAI's own has no place: other servers send it in fields of their
own (`reasoning_content`, `reasoning`, `reasoning_details`), or between tags in the text.

It goes back in the form it came in, with every message that asked for calls: some services refuse the conversation
without, also turns later. What was thought before an answer nobody wants back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from brainq.contracts.message import Message
from brainq.contracts.reasoning import Reasoning
from brainq.providers.replayed import replayed
from brainq.providers.think_tags import CLOSE, OPEN
from brainq.text.surrogates import clean, clean_json

WIRE = "openai"
FIELDS = ("reasoning_content", "reasoning")
DETAILS = "reasoning_details"
REFUSABLE = (*FIELDS, DETAILS)
TAG = "think"
_JOINED = ("text", "summary", "data")


def thought_in(message: Mapping[str, Any]) -> tuple[str, str]:
    """(name of the field, text) of a message or a delta; two fields say the same. ("", "") for none."""
    for name in FIELDS:
        if isinstance(message.get(name), str) and message[name]:
            return name, message[name]
    return "", ""


class Thoughts:
    """What a reply's fields say it thought, put together."""

    def __init__(self) -> None:
        self._field = ""
        self._parts: list[str] = []
        self._details: list[dict[str, Any]] = []

    def feed(self, message: Mapping[str, Any]) -> str:
        """The text that a delta, or a whole message, adds."""
        name, text = thought_in(message)
        self._field = self._field or name
        self._parts.append(text)
        for detail in message.get(DETAILS) or ():
            self._add_detail(detail)
        return text

    def _add_detail(self, detail: dict[str, Any]) -> None:
        """A stream sends one in pieces that have its index."""
        last = self._details[-1] if self._details else None
        if last is None or any(last.get(name) != detail.get(name) for name in ("type", "index")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            if name in _JOINED and isinstance(value, str):
                last[name] = (last.get(name) or "") + value
            elif value is not None:
                last[name] = value

    def reasoning(self, in_tags: str = "") -> tuple[Reasoning, ...]:
        """`in_tags`: what stood between tags in the text."""
        text = clean("".join(self._parts))
        block: dict[str, Any] = {"field": self._field} if text else {}
        if self._details:
            block[DETAILS] = clean_json(self._details)
        if block:
            return (Reasoning(wire=WIRE, text=text, block=block),)
        if in_tags.strip():
            return (Reasoning(wire=WIRE, text=in_tags, block={"field": TAG}),)
        return ()


def with_thoughts(made: dict[str, Any], message: Message, model: str | None) -> dict[str, Any]:
    """The message of a reply that asked for calls, with what `model` thought for it."""
    for thought in replayed(message, WIRE, model):
        name, details = str(thought.block.get("field") or ""), thought.block.get(DETAILS)
        if details:
            made[DETAILS] = details
        elif name == TAG:
            made["content"] = f"{OPEN}{thought.text}{CLOSE}\n\n{made['content'] or ''}"
        elif name:
            made[name] = thought.text
    return made
