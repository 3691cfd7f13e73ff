"""The failures of a service as ProviderError: refusals, refused parameters, waits, and the limits in its headers."""

from __future__ import annotations

import math
import re
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from brainq.adapters.models.error_body import error_detail, page_text
from brainq.adapters.models.refusals import Rule, decide
from brainq.contracts.rate import RateReport
from brainq.engine.models.asking.permits import ServiceRequest
from brainq.engine.models.asking.retry import ServiceError
from brainq.errors import ProviderError
from brainq.runtime.text.failures import failure_text
from brainq.runtime.text.shorten import beginning
from brainq.runtime.text.surrogates import clean

MAX_MESSAGE_CHARS = 300
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
_LASTING_ERRORS = frozenset({"TooManyRedirects", "UnsupportedProtocol", "LocalProtocolError", "InvalidURL"})
# A service that finds an output limit too large knows the limit: without it the reply would have none.
_OUTPUT_LIMIT_VALUE = re.compile(
    r"tokens\W{1,5}(is |are |value )?(too (large|big|high|small|low)|must be|exceeds?|out of range)"
)
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_MINUTE_RANGE_S = (30.0, 90.0)


def from_sdk_error(error: Exception, sdk: Any, provider: str) -> ProviderError:
    """Return the ProviderError for anything that a call through `sdk` can raise.

    Both SDKs use the same names for their exceptions, and are imported lazily.
    """
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, sdk.APIStatusError):
        return from_status(provider, int(getattr(error, "status_code", 0)), _headers_of(error), error_body(error))
    if isinstance(error, sdk.APITimeoutError) or _is_transport(error, "TimeoutException"):
        return ServiceError(f"{provider}: the service did not answer in time", kind="timeout", retryable=True)
    if isinstance(error, sdk.APIConnectionError) or _is_transport(error, "RequestError"):
        return _connection_error(error.__cause__ or error, provider)
    if isinstance(error, ValueError):  # errors of JSON and UTF-8 are ValueErrors
        return ServiceError(
            _shortened(f"{provider}: the service's answer cannot be read ({error})"), kind="malformed", retryable=True
        )
    return ServiceError(_shortened(f"{provider}: {failure_text(error)}"), kind="refused", retryable=False)


def _connection_error(cause: BaseException, provider: str) -> ServiceError:
    """Return the error of a request without an answer. It is not retryable if the address itself is wrong."""
    name = type(cause).__name__
    is_lasting = name in _LASTING_ERRORS or "CERTIFICATE_VERIFY_FAILED" in str(cause)
    text = f"{provider}: the connection failed ({name}: {cause})"
    if is_lasting:
        text += f"; check the address of {provider}"
    return ServiceError(_shortened(text), kind="connection", retryable=not is_lasting)


def error_body(error: Any) -> Any:
    """Return the whole body of an SDK's APIStatusError. The SDK itself keeps only the part under `error`."""
    try:
        return error.response.text  # it was read when the error was made
    except Exception:  # it was not, or there is none
        return getattr(error, "body", None)


def may_have_been_processed(error: BaseException, sdk: Any, *, stream: bool) -> bool:
    """Return whether the service may have worked on a request that it has not answered.

    A stream begins to answer at once. A whole answer comes when the work is done, so a connection that is cut before
    says nothing about the work.
    """
    if not isinstance(error, sdk.APIConnectionError):
        return False
    cause = type(error.__cause__).__name__
    if isinstance(error, sdk.APITimeoutError):
        return cause not in _UNSENT_ERRORS
    return not stream and cause in _CUT_CONNECTION_ERRORS


def from_status(provider: str, status: int, headers: Mapping[str, str], body: Any) -> ServiceError:
    """Return the error for an HTTP status, its headers and its body."""
    detail = error_detail(body)
    rule = decide(status, detail)
    wait_s = retry_after_s(headers)
    return _refusal(
        rule,
        f"{provider}: HTTP {status}" + (f": {detail.message}" if detail.message else ""),
        provider,
        may_retry=headers.get("x-should-retry") != "false",
        wait_s=detail.wait_s if wait_s is None else wait_s,
    )


def _refusal(rule: Rule, text: str, provider: str, *, wait_s: float | None, may_retry: bool = True) -> ServiceError:
    """Return the error for a refusal under a rule: the service's words, then the advice of the rule."""
    retryable = rule.retry and may_retry
    advice = f"; {rule.advice.format(provider=provider)}" if rule.advice else ""
    return ServiceError(
        _shortened(text) + advice, kind=rule.kind, retryable=retryable, retry_after_s=wait_s if rule.retry else None
    )


def refused_parameter(status: int, body: Any, candidates: Iterable[str]) -> str | None:
    """Return the one of `candidates` that the service does not support, or None if the error is about something else.

    The body's `param` names it, or else the first of them in the text: `Unsupported parameter: 'max_tokens' ... Use
    'max_completion_tokens' instead` is about `max_tokens`. A complaint about the content of a schema is not meant: it
    must reach the author of the schema.
    """
    if not is_unsupported(status, body):
        return None
    detail, known = error_detail(body), tuple(candidates)
    if detail.param in known:
        return detail.param
    text = detail.message.lower()
    places = {name: found.start() for name in known if (found := re.search(rf"\b{re.escape(name)}\b", text))}
    return min(places, key=places.__getitem__, default=None)


def refusal_key(what: str, model: str) -> str:
    """Return the key of something that this model refuses. Other models of its service may support it."""
    return f"{what}: {model}"


def is_unsupported(status: int, body: Any) -> bool:
    """Return whether the service does not support a part of the request."""
    if status not in (400, 404, 422):
        return False
    text = error_detail(body).message.lower()
    if "invalid schema" in text or "format.schema" in text or _OUTPUT_LIMIT_VALUE.search(text):
        return False
    return any(word in text for word in _UNSUPPORTED_WORDS)


def from_error_event(provider: str, event: Any) -> ServiceError:
    """Return the error for a failure that came with HTTP 200, or inside such a stream.

    event: the whole event, or its `error`.
    """
    detail = error_detail(event)
    text = (
        f"{provider}: the service reported an error: {detail.message or ', '.join(detail.codes) or 'it gave no reason'}"
    )
    return _refusal(decide(None, detail), text, provider, wait_s=detail.wait_s)


def not_an_api(provider: str, page: str) -> ServiceError:
    """Return the error for a web page that came with HTTP 200."""
    return ServiceError(
        _shortened(f"{provider}: the address answers with a web page, not with an API: {page_text(page)}")
        + f"; check the address of {provider}",
        kind="denied",
        retryable=False,
    )


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait, from `retry-after-ms` or `Retry-After` (seconds or an HTTP date), or None if both are
    absent.

    A date is compared with the answer's own `Date` header, so this machine's clock need not be right.
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
    """Return the seconds since 1970 of an HTTP date, or None for any other text."""
    if value is None:
        return None
    try:
        return parsedate_to_datetime(value).timestamp()
    except ValueError:
        return None


def _headers_of(error: Any) -> Mapping[str, str]:
    response = getattr(error, "response", None)
    return {} if response is None else response.headers


def _is_transport(error: Exception, name: str) -> bool:
    """Return whether `error` is an exception of the HTTP library, which the SDKs pass on while a body is read.

    Older SDKs use httpx, newer ones httpx2. Neither is imported here.
    """
    for module in ("httpx2", "httpx"):
        kind = getattr(sys.modules.get(module), name, None)
        if kind is not None and isinstance(error, kind):
            return True
    return False


def _shortened(text: str) -> str:
    return beginning(clean(text), MAX_MESSAGE_CHARS)


def note_http_answer(sent: ServiceRequest, headers: Mapping[str, str], status: int = 200) -> None:
    """Note that an HTTP answer begins, and what its headers say about the limits of the service."""
    sent.note_answer(status, None if sent.permit.policy is None else read_rate_limits(headers, status))


def read_rate_limits(headers: Mapping[str, str], status: int) -> RateReport:
    """Return the limits per minute, and the wait if the status is 429.

    `x-ratelimit-limit-requests` may be a limit per minute, second or day. A limit counts only if the remaining amount
    and its reset time fit a minute.
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
    """Return the seconds of `12ms`, `1s`, `6m0s`, `1h2m` or a number.

    An instant of RFC 3339, as Anthropic sends it, is compared with the answer's own date.
    """
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
