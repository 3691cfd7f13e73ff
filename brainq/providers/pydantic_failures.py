"""pydantic-ai's exceptions -> ProviderError."""

from __future__ import annotations

from pydantic_ai import exceptions as theirs

from brainq.errors import ProviderError, SetupError
from brainq.providers.failures import ServiceError, from_status
from brainq.text.shorten import beginning
from brainq.text.surrogates import clean

MAX_MESSAGE_CHARS = 300
# The first that fits counts.
_KINDS: tuple[tuple[type[Exception], str, bool], ...] = (
    (theirs.ModelQuotaExceededError, "quota", False),
    (theirs.ModelRateLimitError, "rate_limited", True),
    (theirs.ModelContextWindowExceededError, "too_long", False),
    (theirs.ModelRequestRejectedError, "refused", False),
    (theirs.ModelTimeoutError, "timeout", True),
    (theirs.ModelRequestTimeout, "timeout", True),
    (TimeoutError, "timeout", True),
    (theirs.ModelConnectionError, "connection", True),
    (theirs.ModelUnavailableError, "server", True),
    (theirs.ModelServerError, "server", True),
    (theirs.UnexpectedModelBehavior, "malformed", True),
    (ValueError, "malformed", True),
    (OSError, "connection", True),
)


def translate(error: Exception, provider: str) -> ProviderError | SetupError:
    """The error for anything that a call of a model can raise; SetupError where a key or a package is missing."""
    if isinstance(error, ProviderError | SetupError):
        return error
    said = beginning(clean(str(error)), MAX_MESSAGE_CHARS)
    if isinstance(error, ImportError):
        return SetupError(f"the provider {provider!r} misses a package; {said}")
    if isinstance(error, theirs.UserError):
        return SetupError(f"the provider {provider!r} cannot be asked; {said}")
    wait_s = getattr(error, "retry_after", None)
    for kind_of_error, kind, retryable in _KINDS:
        if isinstance(error, kind_of_error):
            return ServiceError(f"{provider}: {said}", kind=kind, retryable=retryable, retry_after_s=wait_s)
    if isinstance(error, theirs.ModelHTTPError):
        return from_status(provider, error.status_code, error.headers or {}, error.body)
    if isinstance(error, theirs.ModelAPIError):
        return ServiceError(f"{provider}: {said}", kind="server", retryable=True, retry_after_s=wait_s)
    # An HTTP library's own, while a body is read: neither is imported here.
    if any(base.__name__ in ("TransportError", "RequestError") for base in type(error).__mro__):
        return ServiceError(f"{provider}: the connection failed ({said})", kind="connection", retryable=True)
    return ServiceError(f"{provider}: {type(error).__name__}: {said}", kind="refused", retryable=False)
