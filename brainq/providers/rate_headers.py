"""What the headers of a service's answer say of its limits. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from brainq.contracts.rate import RateSaid
from brainq.providers.failures import instant, retry_after_s

_SPAN = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_NEAR_A_MINUTE_S = (30.0, 90.0)


def said_of(headers: Mapping[str, str], status: int) -> RateSaid:
    """Limits a minute, and from a 429 how long to wait.

    `x-ratelimit-limit-requests` may be of a minute, a second or a day. What is left, and when all of it will be there
    again, tells: a limit counts only where that fits a minute.
    """
    stop_s = (retry_after_s(headers) or 0.0) if status == 429 else 0.0
    return RateSaid(_a_minute(headers, "requests"), _a_minute(headers, "tokens"), stop_s)


def _a_minute(headers: Mapping[str, str], what: str) -> int | None:
    for limit, remaining, reset in (
        (f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}"),
        tuple(f"anthropic-ratelimit-{what}-{part}" for part in ("limit", "remaining", "reset")),
    ):
        most, left = _count(headers.get(limit)), _count(headers.get(remaining))
        full_in_s = _seconds(headers.get(reset), headers.get("date"))
        if most and left is not None and full_in_s is not None and left < most:
            window_s = full_in_s * most / (most - left)
            if _NEAR_A_MINUTE_S[0] <= window_s <= _NEAR_A_MINUTE_S[1]:
                return most
    return None


def _count(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() else None


def _seconds(value: str | None, date: str | None) -> float | None:
    """`12ms`, `1s`, `6m0s`, `1h2m`, a number of seconds, or an instant of RFC 3339, as Anthropic's, read against the
    answer's own date."""
    if not value:
        return None
    fit = _SPAN.fullmatch(value)
    if fit is not None and any(fit.groups()):
        days, hours, minutes, seconds, millis = (float(part or 0) for part in fit.groups())
        return days * 86400 + hours * 3600 + minutes * 60 + seconds + millis / 1000
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = datetime.fromisoformat(value)
    except ValueError:
        return None
    now = instant(date)
    if until.tzinfo is None or now is None:
        return None
    return max(0.0, until.astimezone(UTC).timestamp() - now)
