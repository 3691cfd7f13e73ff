"""What a service's answer says beside a reply: failures as ProviderError, refused parameters, waits, and the
limits in its headers.
"""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from brainq.contracts.rate import RateReport
from brainq.errors import ProviderError
from brainq.text.shorten import beginning
from brainq.text.surrogates import clean

MAX_MESSAGE_CHARS = 300
_RETRYABLE_STATUS = frozenset({408, 409, 429})
_FINAL_ERROR_TYPES = {
    *("authentication_error", "billing_error", "invalid_request_error"),
    *("not_found_error", "permission_error", "request_too_large"),
}
_FINAL_ERROR_CODES = ("invalid_", "image_", "unsupported_", "empty_image")  # of the Responses API
_RATE_LIMIT_TYPES = frozenset({"rate_limit_error", "rate_limit_exceeded"})
_TOO_LONG_MARKS = (
    "context_length_exceeded",
    "prompt is too long",
    "maximum context length",
    "context window",
    "exceed_context_size",  # llama.cpp, on either wire
)
_UNSUPPORTED_WORDS = (
    "support",
    "unknown",
    "unrecognized",
    "unexpected",
    "not permitted",
    "not allowed",
    "extra",
    "deprecated",
    "does not match any of the expected tags",
    "may only be",
    "cannot both",
)
_UNSENT_ERRORS = frozenset({"ConnectTimeout", "PoolTimeout", "WriteTimeout"})
_CUT_CONNECTION_ERRORS = frozenset({"ReadError", "RemoteProtocolError"})
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_MINUTE_RANGE_S = (30.0, 90.0)


class ServiceError(ProviderError):
    """A ProviderError that also says how many seconds the service asked us to wait (None: it did not).

    is_shared   the whole fleet waits for that: the next request waits for its permit
    """

    is_shared = False

    def __init__(self, message: str, *, kind: str, retryable: bool, retry_after_s: float | None = None) -> None:
        super().__init__(message, kind=kind, retryable=retryable)
        self.retry_after_s = retry_after_s


def from_sdk_error(error: Exception, sdk: Any, provider: str, *, is_shared: bool = False) -> ProviderError:
    """The ProviderError for anything that a call through `sdk` can raise; `is_shared` as of ServiceError. Both SDKs
    name their exceptions alike, and are imported lazily."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, sdk.APIStatusError):
        known = from_status(
            provider, int(getattr(error, "status_code", 0)), _headers_of(error), getattr(error, "body", None)
        )
        known.is_shared = is_shared
        return known
    if isinstance(error, sdk.APITimeoutError) or _is_transport(error, "TimeoutException"):
        return ServiceError(f"{provider}: the service did not answer in time", kind="timeout", retryable=True)
    if isinstance(error, sdk.APIConnectionError) or _is_transport(error, "RequestError"):
        cause = error.__cause__ or error
        return ServiceError(
            _shortened(f"{provider}: the connection failed ({type(cause).__name__}: {cause})"),
            kind="connection",
            retryable=True,
        )
    if isinstance(error, ValueError):  # JSON and UTF-8 errors are ValueErrors
        return ServiceError(
            _shortened(f"{provider}: the service sent something unreadable ({error})"), kind="malformed", retryable=True
        )
    return ServiceError(_shortened(f"{provider}: {type(error).__name__}: {error}"), kind="refused", retryable=False)


def may_have_been_processed(error: BaseException, sdk: Any, *, stream: bool) -> bool:
    """Whether the service may have worked on a request that it answered nothing.

    A stream begins to answer at once. A whole answer comes when the work is done, so a connection that is cut before it
    tells nothing of the work.
    """
    if not isinstance(error, sdk.APIConnectionError):
        return False
    cause = type(error.__cause__).__name__
    if isinstance(error, sdk.APITimeoutError):
        return cause not in _UNSENT_ERRORS
    return not stream and cause in _CUT_CONNECTION_ERRORS


def from_status(provider: str, status: int, headers: Mapping[str, str], body: Any) -> ServiceError:
    """The error for an HTTP status, its headers, and its parsed body."""
    detail = error_detail(body)
    text = _shortened(f"{provider}: HTTP {status}: {detail[0]}" if detail[0] else f"{provider}: HTTP {status}")
    retryable = (status in _RETRYABLE_STATUS or status >= 500) and headers.get("x-should-retry") != "false"
    wait_s = retry_after_s(headers)
    if status == 429:
        if "insufficient_quota" in detail[1:]:
            return ServiceError(text, kind="quota", retryable=False)
        return ServiceError(text, kind="rate_limited", retryable=retryable, retry_after_s=wait_s)
    if status in _RETRYABLE_STATUS or status >= 500:
        return ServiceError(text, kind="server", retryable=retryable, retry_after_s=wait_s)
    if status == 413 or any(mark in part for part in detail for mark in _TOO_LONG_MARKS):
        return ServiceError(text, kind="too_long", retryable=False)
    if status in (401, 403):
        text += f"; check the API key of {provider}"
    return ServiceError(text, kind="refused", retryable=False)


def refused_parameter(status: int, body: Any, candidates: Iterable[str]) -> str | None:
    """Which of `candidates` the service says it does not know; None if the error is about something else.

    A complaint about the content of a schema is a different thing: it must reach the schema's author.
    """
    if not is_unsupported(status, body):
        return None
    text = error_detail(body)[0].lower()
    return next((name for name in candidates if re.search(rf"\b{re.escape(name)}\b", text)), None)


def refusal_key(what: str, model: str) -> str:
    """The key of what one model does not take; others of its service may take it."""
    return f"{what}: {model}"


def is_unsupported(status: int, body: Any) -> bool:
    """Whether the service says that it does not take something of the request."""
    text = error_detail(body)[0].lower()
    if status not in (400, 422) or "invalid schema" in text or "format.schema" in text:
        return False
    return any(word in text for word in _UNSUPPORTED_WORDS)


def from_error_event(provider: str, error: Any) -> ServiceError:
    """The error for an `error` object that came with, or inside a stream that began with, HTTP 200."""
    message, *types = error_detail({"error": error})
    text = _shortened(f"{provider}: the service reported an error: {message or error!r}")
    if any(mark in part for part in (message, *types) for mark in _TOO_LONG_MARKS):
        return ServiceError(text, kind="too_long", retryable=False)
    if "insufficient_quota" in types:
        return ServiceError(text, kind="quota", retryable=False)
    if _FINAL_ERROR_TYPES.intersection(types) or any(kind.startswith(_FINAL_ERROR_CODES) for kind in types):
        return ServiceError(text, kind="refused", retryable=False)
    kind = "rate_limited" if _RATE_LIMIT_TYPES.intersection(types) else "server"
    return ServiceError(text, kind=kind, retryable=True)


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or an HTTP date); None if absent.

    A date is read against the answer's own `Date` header, so this machine's clock need not be right.
    """
    for name, unit_s in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            seconds = float(value) * unit_s
        except ValueError:
            continue
        return max(0.0, seconds) if math.isfinite(seconds) else None
    until = http_date_s(headers.get("retry-after"))
    if until is None:
        return None
    now = http_date_s(headers.get("date"))
    return max(0.0, until - (time.time() if now is None else now))


def http_date_s(value: str | None) -> float | None:
    """Seconds since 1970 of an HTTP date; None for other text."""
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def error_detail(body: Any) -> tuple[str, str, str]:
    """Message, type and code of an error body.

    Both vendors nest them under `error` (an SDK may have unwrapped it); FastAPI servers send `detail`, whose
    entries echo the request's content, so only place and message are taken from them.
    """
    if not isinstance(body, Mapping):
        return (str(body) if body else "", "", "")
    inner: Any = body.get("error") or body
    if not isinstance(inner, Mapping):
        return (str(inner), "", "")
    message: Any = inner.get("message") or inner.get("detail") or ""
    if isinstance(message, list):
        message = "; ".join(f"{item.get('loc')}: {item.get('msg')}" for item in message if isinstance(item, Mapping))
    return (str(message), str(inner.get("type") or ""), str(inner.get("code") or ""))


def _headers_of(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return {} if response is None else response.headers


def _is_transport(error: Exception, name: str) -> bool:
    """Whether `error` is the HTTP library's own exception; the SDKs let it through while a body is read.

    Older SDKs are built on httpx, newer ones on httpx2; neither is imported here.
    """
    for module in ("httpx2", "httpx"):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return True
    return False


def _shortened(text: str) -> str:
    return beginning(clean(text), MAX_MESSAGE_CHARS)


def read_rate_limits(headers: Mapping[str, str], status: int) -> RateReport:
    """Limits a minute, and from a 429 how long to wait.

    `x-ratelimit-limit-requests` may be of a minute, a second or a day. What is left, and when all of it will be there
    again, tells: a limit counts only where that fits a minute.
    """
    stop_s = (retry_after_s(headers) or 0.0) if status == 429 else 0.0
    return RateReport(_limit_per_minute(headers, "requests"), _limit_per_minute(headers, "tokens"), stop_s)


def _limit_per_minute(headers: Mapping[str, str], what: str) -> int | None:
    for limit, remaining, reset in (
        (f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}"),
        tuple(f"anthropic-ratelimit-{what}-{part}" for part in ("limit", "remaining", "reset")),
    ):
        full, left = _whole_number(headers.get(limit)), _whole_number(headers.get(remaining))
        full_in_s = _reset_seconds(headers.get(reset), headers.get("date"))
        if full and left is not None and full_in_s is not None and left < full:
            window_s = full_in_s * full / (full - left)
            if _MINUTE_RANGE_S[0] <= window_s <= _MINUTE_RANGE_S[1]:
                return full
    return None


def _whole_number(value: str | None) -> int | None:
    return int(value) if value is not None and value.isascii() and value.isdigit() else None


def _reset_seconds(value: str | None, date: str | None) -> float | None:
    """`12ms`, `1s`, `6m0s`, `1h2m`, a number of seconds, or an instant of RFC 3339, as Anthropic's, read against the
    answer's own date."""
    if not value:
        return None
    fit = _DURATION.fullmatch(value)
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
    now = http_date_s(date)
    if until.tzinfo is None or now is None:
        return None
    return max(0.0, until.astimezone(UTC).timestamp() - now)
