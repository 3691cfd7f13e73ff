"""Token counts of model calls, as services report them. An impossible count is never used unchanged.

Services send negative, fractional and missing counts, counts as text, and cached tokens beside the prompt's
(langsmith-sdk issue 1858). A reply is never lost over such a count, and never becomes free by it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, cast

from pydantic import Field, ModelWrapValidatorHandler, ValidationError, model_validator

from brainq.contracts.base import Wire

MAX_COUNT = 2**53 - 1  # the largest whole number that Lua and JSON readers represent exactly
MAX_REPLY_TOKENS = 100_000_000
"""More than one reply can use: the longest contexts on offer have 10,000,000 tokens (Llama 4 Scout, model card)."""
_NUMBER = re.compile(r"[0-9]{1,16}(\.[0-9]{1,16})?")

Count = Annotated[int, Field(strict=True, ge=0, le=MAX_COUNT)]


class TokenUsage(Wire):
    """The token counts of one reply, or a sum of several. `input_tokens` includes the cached ones.

    A fractional count is rounded up, and an impossible one becomes 0. If more tokens are cached than were sent, they
    were counted separately, and are added. In all these cases the usage is `estimated`.

    estimated: whether a part of it was not counted by the service.
    """

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_tokens: Count = 0
    cache_creation_tokens: Count = 0
    estimated: bool = False

    @model_validator(mode="wrap")
    @classmethod
    def _read(cls, given: Any, handler: ModelWrapValidatorHandler[TokenUsage]) -> TokenUsage:
        if isinstance(given, TokenUsage):
            return given
        try:
            usage = handler(given)
        except ValidationError:
            if not isinstance(given, Mapping):
                raise
            usage = handler(_possible(cast("Mapping[str, Any]", given)))
        cached = usage.cache_read_tokens + usage.cache_creation_tokens
        if cached <= usage.input_tokens:
            return usage
        most = min(MAX_COUNT, usage.input_tokens + cached)
        return handler({**dict(usage), "input_tokens": most, "estimated": True})

    @property
    def total(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: TokenUsage) -> TokenUsage:
        return TokenUsage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_creation_tokens=self.cache_creation_tokens + other.cache_creation_tokens,
            estimated=self.estimated or other.estimated,
        )


_COUNTS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens")


def _possible(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a TokenUsage with possible counts."""
    read = {name: read_count(given[name]) for name in _COUNTS if name in given}
    estimated = bool(given.get("estimated")) or not all(exact for _, exact in read.values())
    return {**given, **{name: count for name, (count, _) in read.items()}, "estimated": estimated}


def read_count(value: object, most: int = MAX_COUNT) -> tuple[int, bool]:
    """Return the count that a service means by `value`, and whether the value is exact.

    A fraction is rounded up. An impossible count becomes 0 and is not exact; None is exactly 0.
    """
    if value is None:
        return 0, True
    if isinstance(value, str) and (number := _NUMBER.fullmatch(value.strip())):
        return read_count(float(number[0]), most)[0], False
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:  # NaN is in no range
        return 0, False
    count = math.ceil(value)
    return count, count == value


def reported_usage(
    *,
    sent: object,
    written: object,
    cache_read: object = None,
    cache_creation: object = None,
    thought: object = None,
    total: object = None,
) -> TokenUsage:
    """Return the usage that one reply's service reports, whatever values its counts have.

    thought: tokens that `written` should include. If it does not (xAI), or if `total` shows that something is missing
        (thinking over Gemini's OpenAI endpoint), they are added, because they are billed.
    """
    values = (sent, written, cache_read, cache_creation, thought, total)
    counts, exact = zip(*(read_count(value, MAX_REPLY_TOKENS) for value in values), strict=True)
    usage = TokenUsage(
        input_tokens=counts[0],
        output_tokens=counts[1],
        cache_read_tokens=counts[2],
        cache_creation_tokens=counts[3],
        estimated=not all(exact[:4]),
    )
    beside, rest = counts[4], counts[5] - usage.total
    if usage.input_tokens and rest > 0:
        update = {"output_tokens": usage.output_tokens + rest, "estimated": usage.estimated or rest != beside}
    elif beside > usage.output_tokens:
        update = {"output_tokens": usage.output_tokens + beside, "estimated": True}
    else:
        return usage
    return usage.model_copy(update=update)
