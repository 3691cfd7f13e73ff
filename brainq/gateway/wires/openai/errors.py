"""Errors of rejected requests and of turns without an answer, in OpenAI's form `{"error": {"message", ...}}`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ConfigDict
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq.contracts.model import parse_failure
from brainq.contracts.status import Ending
from brainq.gateway.edge.problems import MEDIA_TYPE, problem_responses
from brainq.gateway.wires.openai.part_fold import PartFailed

PATHS = ("/v1/chat/completions", "/v1/responses", "/v1/models")
_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_CODES = {"unauthorized": "invalid_api_key", "too-many-requests": "rate_limit_exceeded"}
_RETRIED_IN_VAIN = (409, 410, 500)
"""The statuses after which official clients retry, although the retry is certain to fail."""
OPENAI_FIELDS = {"client_tools": "tools", "user_message": "messages", "output_schema": "response_format"}
"""The names that fields of a turn have on these wires, if they differ."""
_ENDING_STATUS = {
    Ending.COMPLETED: (500, "invalid_output"),
    Ending.CANCELLED: (409, "turn_cancelled"),
    Ending.TIMED_OUT: (504, "turn_timed_out"),
    Ending.FAILED: (500, "turn_failed"),
}
_FAILURE_STATUS: dict[str, tuple[int, str]] = {
    "too_long": (400, "context_length_exceeded"),
    "over_limit": (413, "request_too_large"),
    "filtered": (400, "content_filter"),
    "rate_limited": (429, "rate_limit_exceeded"),
    "quota": (429, "insufficient_quota"),
}


def client_retries(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether an official client retries a request after this answer."""
    given = {name.lower(): value for name, value in headers}.get(b"x-should-retry")
    if given is not None:
        return given == b"true"
    return status in (408, 429) or (status >= 500 and status not in _RETRIED_IN_VAIN)


class ErrorDetail(BaseModel):
    model_config = ConfigDict(extra="forbid")

    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    """The body of an error response in OpenAI's form."""

    model_config = ConfigDict(extra="forbid")

    error: ErrorDetail


def is_openai_path(path: str) -> bool:
    return any(path == known or path.startswith(f"{known}/") for known in PATHS)


def openai_error(message: str, status: int, code: str, param: str | None = None) -> dict[str, Any]:
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "server_error")
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses of a route for the OpenAPI document."""
    body = {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}}
    return {status: {**problem, "content": body} for status, problem in problem_responses(*statuses).items()}


def answer_responses(description: str, *errors: int, streams: bool = False) -> dict[int | str, dict[str, Any]]:
    """Return the responses of a route for the OpenAPI document: an object, perhaps a stream, and these errors."""
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}}}
    if streams:
        content["text/event-stream"] = {}
    return {200: {"description": description, "content": content}, **error_responses(*errors)}


class OpenAiErrorMiddleware:
    """The middleware that converts every problem on the paths of OpenAI's wires to OpenAI's form."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not is_openai_path(scope["path"]):
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        body = b""

        async def reshaped(message: Message) -> None:
            nonlocal start, body
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
                return
            if start is None:
                await send(message)
                return
            body += message.get("body", b"")
            if not message.get("more_body"):
                for each in _openai_messages(start, json.loads(body)):
                    await send(each)

        await self._app(scope, receive, reshaped)


def _is_problem(start: Message) -> bool:
    headers = dict(start["headers"])
    return headers.get(b"content-type", b"").startswith(MEDIA_TYPE.encode())


def _openai_messages(start: Message, problem: dict[str, Any]) -> tuple[Message, Message]:
    # OpenAI answers an invalid field with 400; the official clients treat 422 as another class of error.
    status = 400 if problem["status"] == 422 else problem["status"]
    word = problem["type"].rpartition(":")[2]
    field = problem.get("field")
    param = None if field is None else OPENAI_FIELDS.get(field, field)
    code: str = _CODES.get(word) or word.replace("-", "_")
    body = json.dumps(openai_error(f"{problem['title']}: {problem['detail']}", status, code, param)).encode()
    kept = [
        (name, value)
        for name, value in start["headers"]
        if name not in (b"content-type", b"content-length", b"x-should-retry")
    ]
    more = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status in _RETRIED_IN_VAIN:
        more.append((b"x-should-retry", b"false"))
    return ({**start, "status": status, "headers": [*kept, *more]}, {"type": "http.response.body", "body": body})


def failure_status(ending: Ending, message: str) -> tuple[int, str]:
    """Return the status and the code of a turn that ended without an answer, with this message."""
    failure = parse_failure(message) if ending is Ending.FAILED else None
    return _ENDING_STATUS[ending] if failure is None else _FAILURE_STATUS[failure.kind]


def failure_body(failed: PartFailed) -> dict[str, Any]:
    """Return the error of a turn that ended without an answer."""
    status, code = failure_status(failed.ending, failed.message)
    return openai_error(failed.message, status, code, "messages" if code == "context_length_exceeded" else None)


def failure_response(failed: PartFailed) -> JSONResponse:
    """Return the response of a turn that ended without an answer. Its header keeps clients from retrying."""
    status, _ = failure_status(failed.ending, failed.message)
    headers, failure = {"x-should-retry": "false"}, parse_failure(failed.message)
    if status == 429 and failure is not None and failure.retry_after_s:
        headers["Retry-After"] = str(failure.retry_after_s)
    return JSONResponse(failure_body(failed), status, headers)
