"""How endings of a turn are told on OpenAI's wires."""

from __future__ import annotations

from starlette.responses import JSONResponse

from brainq.contracts.status import Ending
from brainq.http.openai.errors import openai_error
from brainq.http.openai.parts import Answered, Asked, Broke

_BROKEN = {
    Ending.CANCELLED: (409, "turn_cancelled"),
    Ending.TIMED_OUT: (504, "turn_timed_out"),
    Ending.FAILED: (500, "turn_failed"),
}


def finish_of(last: Asked | Answered) -> str:
    """The finish_reason."""
    return "tool_calls" if isinstance(last, Asked) else last.finish


def broken(word: Broke) -> JSONResponse:
    """The answer of a turn that ended without one. Clients are told that the same request would not mend it."""
    status, code = _BROKEN[word.ending]
    body = openai_error(word.message, status, code)
    return JSONResponse(body, status, {"x-should-retry": "false"})
