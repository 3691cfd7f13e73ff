"""Problems: the body of every error response (RFC 9457, `application/problem+json`).

The kinds of brainq's own errors are in `brainq/errors.py`; REJECTIONS are those of HTTP only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from brainq import errors
from brainq.runtime.text.surrogates import clean_json

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:brainq:problem:"
FACTS: dict[type[errors.BrainqError], tuple[str, ...]] = {
    errors.QueueFull: ("setting",),
    errors.SchedulesFull: ("setting",),
    errors.BudgetSpent: ("budget", "ends_at"),
    errors.BuildUnserved: ("build",),
    errors.SubmitConflict: ("used_by",),
    errors.ResultRefused: ("was_given",),
}
"""The attributes of errors that programs may read, and that the message has in words."""
NOT_FOUND = "this caller has no object with this id; check the id and the token"
NOT_SET_UP = "the gateway is not set up for this; its operator can find the reason with `brainq doctor`"


class Problem(BaseModel):
    """A description of what went wrong and what to do about it.

    type                the kind of problem: `urn:brainq:problem:` and a word for programs
    detail              an explanation of this occurrence, with the field and the remedy
    field               the field that is wrong
    request_key         the `Idempotency-Key` under which a retry is the same turn
    client_message_id   the id under which a retry is the same input
    live_turn_id        the session's live turn
    state               an approval's state
    problem_id          the id of the matching line in the gateway's log
    facts               other values of the error, by their names in Python
    """

    model_config = ConfigDict(extra="forbid")

    type: str = Field(pattern="^urn:brainq:problem:[a-z-]+$")
    title: str
    status: int = Field(ge=400, le=599)
    detail: str
    field: str | None = None
    request_key: str | None = None
    client_message_id: str | None = None
    live_turn_id: str | None = None
    state: str | None = None
    problem_id: str | None = None
    facts: dict[str, str | bool] | None = None


def _http_kind(word: str, title: str, status: int, retry_after_s: int | None = None) -> errors.ErrorKind:
    return errors.ErrorKind(word, title, errors.ExitCode.REFUSED, status, retry_after_s)


REJECTIONS: dict[str, errors.ErrorKind] = {
    kind.word: kind
    for kind in (
        _http_kind("bad-json", "The body is not JSON", 400),
        _http_kind("two-lengths", "The body has two lengths", 400),
        _http_kind("unauthorized", "Authentication required", 401),
        _http_kind("forbidden", "The caller may not do this", 403),
        _http_kind("foreign-origin", "The page's origin is not allowed", 403),
        _http_kind("model-not-found", "Model not found", 404),
        _http_kind("no-such-route", "Route not found", 404),
        _http_kind("method-not-allowed", "The route does not support the method", 405),
        _http_kind("body-too-slow", "The body took too long", 408),
        _http_kind("events-gone", "The events are gone", 410),
        _http_kind("body-too-large", "The body is too large", 413),
        _http_kind("wrong-host", "The request is for another host", 421),
        _http_kind("too-many-requests", "Too many requests", 429, 1),
        _http_kind("too-many-streams", "The caller has too many streams open", 429, 5),
        _http_kind("bug", "A bug in brainq", 500),
        _http_kind("streams-full", "The gateway has too many streams open", 503, 5),
        _http_kind("short", "The gateway lacks descriptors, memory or threads", 503, 1),
        _http_kind("stopping", "The gateway is stopping", 503, 1),
    )
}


class SessionNotAllowed(errors.NotFound):
    """The caller named a session that does not begin with one of its token's prefixes."""


class RequestRejected(Exception):
    """A rejection of a request by the gateway itself. `word` is a key of REJECTIONS."""

    def __init__(self, word: str, detail: str, *, retry_after_s: int | None = None) -> None:
        super().__init__(detail)
        self.kind = REJECTIONS[word]
        self.detail = detail
        self.retry_after_s = retry_after_s or self.kind.retry_after_s


def problem_of(error: errors.BrainqError | RequestRejected) -> Problem:
    """Return the problem of an error. It never contains another tenant's data or the addresses of servers."""
    if isinstance(error, RequestRejected):
        return _problem(error.kind, error.detail)
    problem = _problem(errors.kind_of(error), _detail(error))
    match error:
        case errors.InvalidInput():
            more: dict[str, Any] = {"field": error.field}
        case errors.Unreachable():
            more = {"request_key": error.request_key, "client_message_id": error.client_message_id}
        case errors.SessionBusy() | errors.StaleTurn():
            more = {"live_turn_id": error.live_turn_id}
        case errors.ApprovalDecided():
            more = {"state": error.state}
        case _:
            more = {}
    values = {name: getattr(error, name) for name in FACTS.get(type(error), ())}
    more["facts"] = {name: str(value) if isinstance(value, datetime) else value for name, value in values.items()}
    return problem.model_copy(update={name: value for name, value in more.items() if value})


def problem_response(problem: Problem, retry_after_s: int | None = None) -> JSONResponse:
    """Return the response of a problem. `Retry-After` is in seconds."""
    headers: dict[str, str] = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    body = clean_json(problem.model_dump(exclude_none=True))  # it may quote a name that cannot be encoded
    return JSONResponse(body, problem.status, headers, media_type=MEDIA_TYPE)


def error_response(error: errors.BrainqError | RequestRejected) -> JSONResponse:
    retry = error.retry_after_s if isinstance(error, RequestRejected) else errors.kind_of(error).retry_after_s
    return problem_response(problem_of(error), retry)


def bug_response(problem_id: str) -> JSONResponse:
    """Return the response to an unexpected failure, whose details are in the log under this id."""
    problem = _problem(
        REJECTIONS["bug"], f"the details are in the gateway's log under {problem_id}; a retry may fail again"
    )
    return problem_response(problem.model_copy(update={"problem_id": problem_id}))


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route for the OpenAPI document."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": _description(status), "content": content} for status in sorted(statuses)}


def _description(status: int) -> str:
    kinds = [*errors.ERROR_KINDS.values(), *REJECTIONS.values()]
    return " ".join(f"{kind.title}." for kind in kinds if kind.status == status)


def _problem(kind: errors.ErrorKind, detail: str) -> Problem:
    return Problem(type=TYPE_PREFIX + kind.word, title=kind.title, status=kind.status, detail=detail)


def _detail(error: errors.BrainqError) -> str:
    match error:
        case errors.NotFound() if not isinstance(error, SessionNotAllowed):
            return NOT_FOUND
        case errors.SubmitConflict(used_by=turn_id) if turn_id:  # the error's own text has the key as it is stored
            return (
                f"this request's key was already used by turn {turn_id!r} with other content; send new content under a "
                "new Idempotency-Key"
            )
        case errors.Unreachable(request_key=key) if key:
            return f"try again later with the Idempotency-Key {key!r}: if the turn was accepted, it will not run twice"
        case errors.Unreachable(client_message_id=key) if key:
            return f"try again later with client_message_id {key!r}: if the input was accepted, it will not count twice"
        case errors.Unreachable():
            return "Redis or SQL does not answer; try again later"
        case errors.SetupError():
            return NOT_SET_UP
        case _:
            return str(error)
