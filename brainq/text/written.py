"""Tokens of a reply that is still being written, piece by piece."""

from __future__ import annotations

import math
from dataclasses import dataclass

from brainq.text.estimate import BYTES_PER_TOKEN_ELSEWHERE, CHARS_PER_TOKEN, JSON_CHARS_PER_TOKEN


@dataclass(slots=True)
class Written:
    """Counts what was written, as `estimate_text` would count the whole: a piece alone would be rounded up."""

    _plain: int = 0
    _elsewhere: int = 0
    _json: int = 0

    def add_text(self, text: str) -> None:
        """Prose: of the answer, or of what is thought."""
        if text.isascii():
            self._plain += len(text)
            return
        plain = len(text.encode("ascii", "ignore"))
        self._plain += plain
        self._elsewhere += len(text.encode("utf-8", "replace")) - plain

    def add_arguments(self, text: str) -> None:
        """A call's name, or a part of its arguments."""
        self._json += len(text.encode("utf-8", "replace"))

    @property
    def tokens(self) -> int:
        """Estimated, rounded up."""
        return math.ceil(
            self._plain / CHARS_PER_TOKEN
            + self._elsewhere / BYTES_PER_TOKEN_ELSEWHERE
            + self._json / JSON_CHARS_PER_TOKEN
        )
