"""The error of a turn whose model could not be asked, where its caller may act on the reason.

The reason is how the error begins: a result crosses processes of several releases, and older ones read it as a text.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

FailureKind = Literal["too_long", "rate_limited", "quota"]

_BEGINS: dict[str, str] = {
    "too_long": "The conversation is longer than the model takes",
    "rate_limited": "The model's service takes no more requests now",
    "quota": "The account at the model's service is used up",
}
_AGAIN = re.compile(r" \(again in (\d{1,6}) s\)")


@dataclass(frozen=True, slots=True)
class ModelFailure:
    """`retry_after_s`: when the service takes requests again, where it said so."""

    kind: FailureKind
    retry_after_s: int | None = None


def failure_text(kind: str, message: str, retry_after_s: float | None = None) -> str:
    """The error of a turn, from a ProviderError's kind and message."""
    begin = _BEGINS.get(kind)
    if begin is None:
        return message
    again = f" (again in {max(1, math.ceil(retry_after_s))} s)" if retry_after_s else ""
    return f"{begin}{again}: {message}"


def read_failure(error: str | None) -> ModelFailure | None:
    """What `failure_text` said; None of any other error."""
    for kind, begin in _BEGINS.items():
        if error and error.startswith(begin):
            again = _AGAIN.match(error, len(begin))
            return ModelFailure(kind, None if again is None else int(again[1]))  # pyright: ignore[reportArgumentType]
    return None
