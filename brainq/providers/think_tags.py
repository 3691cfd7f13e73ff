"""Splits what a model thought from what it answered, where its server sends both as one text: `<think>...</think>`.

The tag counts at the beginning of a reply alone: an answer may speak of it. Some chat templates write the opening tag
themselves, so that only the closing one comes, on a line of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

OPEN, CLOSE = "<think>", "</think>"
_CLOSED_ALONE = re.compile(r"(?:^|\n)[ \t]*</think>[ \t]*(?:\n|$)")


@dataclass(frozen=True, slots=True)
class Split:
    """`is_unopened`: the opening tag never came."""

    text: str = ""
    reasoning: str = ""
    is_unopened: bool = False


class _At(Enum):
    BEGINNING = auto()
    THOUGHT = auto()
    GAP = auto()
    ANSWER = auto()


class ThinkSplitter:
    """Splits a reply as it comes, however its tags are cut.

    is_open        the template is known to open the tag: the reply begins with what was thought
    may_be_open    it may do so: a closing tag alone on its line ends what was thought. Told by `whole` only, since what
                   was said before had to be shown
    """

    def __init__(self, *, is_open: bool = False, may_be_open: bool = False) -> None:
        self._at = _At.THOUGHT if is_open else _At.BEGINNING
        self._is_assumed = is_open
        self._may_be_open = may_be_open
        self._held = ""
        self._text: list[str] = []
        self._thought: list[str] = []

    def feed(self, delta: str) -> Split:
        """What `delta` adds to both."""
        held = self._held + delta
        thought = ""
        if self._at is _At.BEGINNING:
            begins = held.lstrip()
            if OPEN.startswith(begins) and begins != OPEN:  # not all of it, or nothing yet
                self._held = held
                return Split()
            if begins.startswith(OPEN):
                self._at, held = _At.THOUGHT, begins[len(OPEN) :]
            else:
                self._at = _At.ANSWER
        if self._at is _At.THOUGHT:
            thought, close, rest = held.partition(CLOSE)
            if close:
                self._at, held = _At.GAP, rest
            else:
                kept = _half_tag(thought)
                thought, self._held = thought[: len(thought) - kept], thought[len(thought) - kept :]
                self._thought.append(thought)
                return Split(reasoning=thought)
            self._thought.append(thought)
        if self._at is _At.GAP:
            held = held.lstrip()
            if held:
                self._at = _At.ANSWER
        self._held = ""
        self._text.append(held)
        return Split(held, thought)

    def whole(self) -> Split:
        """Both, once the reply is whole."""
        text, thought = "".join(self._text), "".join(self._thought)
        match self._at:
            case _At.BEGINNING:
                return Split(self._held)
            case _At.THOUGHT if self._is_assumed:
                return Split(thought + self._held)  # nothing was thought this time
            case _At.THOUGHT:
                return Split("", thought + self._held)
            case _:
                pass
        if self._may_be_open and not thought and (closed := _CLOSED_ALONE.search(text)):
            return Split(text[closed.end() :].lstrip(), text[: closed.start()], is_unopened=True)
        return Split(text, thought)


def _half_tag(text: str) -> int:
    """How many characters at its end may be the beginning of a closing tag."""
    return next((size for size in range(len(CLOSE) - 1, 0, -1) if text.endswith(CLOSE[:size])), 0)
