"""Cutting text to a length, with a line that says so."""

from __future__ import annotations

from brainq.text.estimate import estimate_text

_HEAD = 0.7  # of what is kept; what a text ends with (an error, a total) matters more than its middle
LINE_CHARS = 120


def beginning(text: str, max_chars: int) -> str:
    """`text`, or its beginning and three dots; never over `max_chars`. For a line, where a note would not fit."""
    return text if len(text) <= max_chars else text[: max(0, max_chars - 3)] + "..."[: max(0, max_chars)]


def line_of(text: str) -> str:
    """How a text begins, as one line of a list."""
    return beginning(" ".join(text[: 4 * LINE_CHARS].split()), LINE_CHARS)


def shortened(text: str, max_chars: int) -> str:
    """`text`, or its beginning and end with a line between that counts what is left out; never over `max_chars`."""
    if len(text) <= max_chars:
        return text
    note = f"\n[... {len(text) - max_chars} characters or more left out ...]\n"
    room = max_chars - len(note)
    if room < len(note):  # a cut this short would be note more than text
        return beginning(text, max_chars)
    head = int(room * _HEAD)
    return text[:head] + note + text[len(text) - (room - head) :]


def shortened_to_tokens(text: str, max_tokens: int) -> str:
    """The same, for a length in estimated tokens."""
    size = estimate_text(text)
    max_chars = len(text)
    while size > max_tokens and max_chars > 0:
        # Tokens are not spread evenly over a text, so a cut in proportion may need another one.
        max_chars = min(max_chars - 1, max_chars * max_tokens // size)
        text = shortened(text, max_chars)
        size = estimate_text(text)
    return text
