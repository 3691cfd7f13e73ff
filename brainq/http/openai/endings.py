"""How endings of a turn are told on OpenAI's wires."""

from __future__ import annotations

from starlette.responses import JSONResponse

from brainq.contracts.model_failure import read_failure
from brainq.contracts.status import Ending
from brainq.http.openai.errors import openai_error
from brainq.http.openai.parts import Answered, Asked, Broke

_BROKEN = {
    Ending.COMPLETED: (500, "invalid_output"),
    Ending.CANCELLED: (409, "turn_cancelled"),
    Ending.TIMED_OUT: (504, "turn_timed_out"),
    Ending.FAILED: (500, "turn_failed"),
}
_FAILED: dict[str, tuple[int, str]] = {
    "too_long": (400, "context_length_exceeded"),
    "rate_limited": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
}


def finish_of(last: Asked | Answered) -> str:
    """The finish_reason."""
    return "tool_calls" if isinstance(last, Asked) else last.finish


def status_of(word: Broke) -> tuple[int, str]:
    """The status and the code of a turn without an answer."""
    failure = read_failure(word.message) if word.ending is Ending.FAILED else None
    return _BROKEN[word.ending] if failure is None else _FAILED[failure.kind]


def broken(word: Broke) -> JSONResponse:
    """The answer of a turn that ended without one. Clients are told that the same request would not mend it."""
    status, code = status_of(word)
    headers, failure = {"x-should-retry": "false"}, read_failure(word.message)
    if status == 429 and failure is not None and failure.retry_after_s:
        headers["Retry-After"] = str(failure.retry_after_s)
    param = "messages" if code == "context_length_exceeded" else None
    return JSONResponse(openai_error(word.message, status, code, param), status, headers)
