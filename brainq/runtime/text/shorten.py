"""Cutting text to a length, with a line that says so."""

from __future__ import annotations

from brainq.runtime.text.estimate import estimate_text

_HEAD = 0.7  # of the kept part; the end of a text (an error, a total) matters more than its middle
LINE_CHARS = 120


def beginning(text: str, max_chars: int) -> str:
    """Return `text`, or its beginning and three dots, within `max_chars`. It is for a single line, which has no place
    for a note."""
    return text if len(text) <= max_chars else text[: max(0, max_chars - 3)] + "..."[: max(0, max_chars)]


def line_of(text: str) -> str:
    """Return the beginning of a text, as one line of a list."""
    return beginning(" ".join(text[: 4 * LINE_CHARS].split()), LINE_CHARS)


def shortened(text: str, max_chars: int) -> str:
    """Return `text`, or its beginning and end with a line in between that counts the omitted part, within
    `max_chars`."""
    if len(text) <= max_chars:
        return text
    note = f"\n[... {len(text) - max_chars} characters or more left out ...]\n"
    room = max_chars - len(note)
    if room < len(note):  # a text this short would consist of the note
        return beginning(text, max_chars)
    head = int(room * _HEAD)
    return text[:head] + note + text[len(text) - (room - head) :]


def shortened_to_tokens(text: str, max_tokens: int) -> str:
    """Return the same for a length in estimated tokens."""
    size = estimate_text(text)
    max_chars = len(text)
    while size > max_tokens and max_chars > 0:
        # Tokens are not spread evenly over a text, so a proportional cut may need another one.
        max_chars = min(max_chars - 1, max_chars * max_tokens // size)
        text = shortened(text, max_chars)
        size = estimate_text(text)
    return text
