"""How far a running call is."""

from __future__ import annotations

import math

from brainq.contracts.base import Wire
from brainq.errors import InvalidInput

MAX_MESSAGE_CHARS = 300


class Progress(Wire):
    """done, total   in units of the tool's own; `total` is None where it is not known
    message          a short line for people
    """

    done: float
    total: float | None = None
    message: str = ""


def checked_progress(done: object, total: object, message: object) -> Progress:
    """Raises InvalidInput for what is no finite number, or no text; a long message is cut."""
    if not isinstance(message, str):
        raise InvalidInput("message", f"it must be a text, not {type(message).__name__}")
    line = " ".join(message.split())[:MAX_MESSAGE_CHARS]
    line = line.encode("utf-8", "replace").decode()
    return Progress(
        done=_number("done", done), total=None if total is None else _number("total", total), message=line
    )


def _number(field: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InvalidInput(field, f"{given!r} is no finite number; say how many are done, such as 3")
    return float(given)
