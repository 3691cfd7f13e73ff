"""The gateway as an ASGI application: its routes, middleware, error handlers and OpenAPI document."""

from __future__ import annotations

import asyncio
import functools
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from inspect import signature
from typing import Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from brainq import __version__
from brainq.app.access import Verb
from brainq.contracts.base import first_problem
from brainq.contracts.event import TurnEvent
from brainq.errors import BrainqError, InvalidInput
from brainq.gateway.edge.access import VERBS, AccessMiddleware, RequestLogMiddleware, current_request
from brainq.gateway.edge.limits import BodyLimitMiddleware
from brainq.gateway.edge.problems import Problem, RequestRejected, error_response, problem_responses
from brainq.gateway.edge.request import Gateway
from brainq.gateway.page import routes as page
from brainq.gateway.rest import (
    audit,
    budgets,
    bulk,
    deployment,
    event_stream,
    memories,
    schedules,
    sessions,
    spend,
    stops,
    turn_control,
    turns,
    versions,
)
from brainq.gateway.wire import Wire, open_wires
from brainq.gateway.wires.openai import chat_completions, response_items, responses
from brainq.gateway.wires.openai.errors import ErrorBody, OpenAiErrorMiddleware, error_responses
from brainq.gateway.wires.openai.retries import RejectedTryApp, RetryMiddleware, is_rejected_try
from brainq.runtime.settings.http import split_list

API_DESCRIPTION = """LLM agent turns over HTTP. Every error is a problem (RFC 9457). A turn's events are a stream of
server-sent events, which any gateway can continue from any event."""
ROUTERS = (
    deployment.router,
    turns.router,
    event_stream.router,
    turn_control.router,
    turn_control.approvals_router,
    sessions.router,
    sessions.list_router,
    schedules.router,
    stops.router,
    audit.router,
    bulk.router,
    versions.router,
    memories.router,
    spend.router,
    budgets.router,
)
CORS_EXPOSED_HEADERS = (
    "Allow",
    "Location",
    "Mcp-Session-Id",
    "Preference-Applied",
    "Retry-After",
    "X-Request-ID",
    "X-Should-Retry",
    "X-Vercel-AI-UI-Message-Stream",
)
"""The response headers that pages of other origins may read."""
COMMON_STATUSES = (400, 401, 403, 404, 405, 408, 413, 421, 422, 429, 500, 502, 503, 504)
COMMON_RESPONSES = problem_responses(*COMMON_STATUSES)
OPENAI_ROUTERS = (chat_completions.router, responses.router, response_items.router)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
DISCONNECT: Message = {"type": "http.disconnect"}


def openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return FastAPI's document with problems and bearer tokens added. It is made once."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=API_DESCRIPTION, routes=app.routes)
        parts = made.setdefault("components", {})
        for model in (Problem, TurnEvent, ErrorBody):
            own = model.model_json_schema(ref_template="#/components/schemas/{model}")
            parts.setdefault("schemas", {}).update({**own.pop("$defs", {}), model.__name__: own})
        parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        for path, methods in made["paths"].items():
            for method, operation in methods.items():
                _add_security(operation, app.state.verbs.get(f"{method.upper()} {path}"))
        app.openapi_schema = made
    return app.openapi_schema


def _add_security(operation: dict[str, Any], verb: Verb | None) -> None:
    operation["security"] = [{"token": []}] if verb else []
    if verb:
        operation["description"] = f"{operation.get('description', '')}\n\nVerb: `{verb.value}`.".strip()


def _without_telemetry() -> dict[str, Any]:
    """Return the options that switch FastAPI's telemetry off, which would record queries and log exceptions."""
    known = "telemetry" in signature(FastAPI).parameters
    return {"telemetry": {"tracing": False, "metrics": False, "logs": False}} if known else {}


def make_app(gateway: Gateway) -> FastAPI:
    """Build the app of a gateway. When it stops, it closes wires and client, and drops long work that is queued."""
    wires = open_wires(gateway)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            for wire in wires:
                await wire.close()
            gateway.long_work.shutdown(wait=False, cancel_futures=True)
            await gateway.client.close()

    app = FastAPI(
        title="brainq",
        version=__version__,
        openapi_url=None,  # FastAPI would encode the document for every request
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=dict(COMMON_RESPONSES),
        **_without_telemetry(),
    )
    app.state.gateway = gateway
    app.state.wires = {wire.name: wire for wire in wires}
    app.state.verbs = VERBS | {route: verb for wire in wires for route, verb in wire.verbs.items()}
    app.openapi = lambda: openapi_document(app)
    _add_routes(app, wires)
    for error in (BrainqError, RequestRejected, RequestValidationError, HTTPException):
        app.add_exception_handler(error, _error_response)
    _add_middleware(app, gateway)
    return app


def _add_routes(app: FastAPI, wires: Sequence[Wire]) -> None:
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(current_request)])
    openai_errors = error_responses(*COMMON_STATUSES)
    for router in OPENAI_ROUTERS:
        app.include_router(router, dependencies=[Depends(current_request)], responses=openai_errors)
    for router in (deployment.health_router, page.router, *(wire.router for wire in wires)):
        app.include_router(router)
    app.add_route("/v1/openapi.json", _document_route(app), methods=["GET"], include_in_schema=False)


def _add_middleware(app: FastAPI, gateway: Gateway) -> None:
    """Add the middleware, innermost first."""
    settings = gateway.settings
    max_bytes, within_s = settings.http_body_bytes, settings.http_slow_s
    retried = BodyLimitMiddleware(RejectedTryApp(gateway), max_bytes, within_s)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(RetryMiddleware, gateway=gateway)
    app.add_middleware(BodyLimitMiddleware, max_bytes=max_bytes, within_s=within_s)
    app.add_middleware(AccessMiddleware, gateway=gateway, retried=retried, is_retried=is_rejected_try)
    if origins := split_list(settings.http_cors):
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            # Any header is allowed, since clients add some with each release; a caller is identified by its token.
            allow_headers=["*"],
            expose_headers=CORS_EXPOSED_HEADERS,
        )
    app.add_middleware(RequestLogMiddleware)
    app.add_middleware(OpenAiErrorMiddleware)


def _document_route(app: FastAPI) -> Callable[[Request], Awaitable[Response]]:
    """Return the route of the OpenAPI document, which is encoded once. Its path is public."""
    written = functools.cache(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())

    async def document(request: Request) -> Response:
        return Response(written(), media_type="application/json")

    return document


class HeadMiddleware:
    """The middleware that answers HEAD like GET without the body. A stream ends after its headers."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        got: Scope = {**scope, "method": "GET"}  # a copy, because the server reads the method of its own scope
        begun = asyncio.Event()

        async def received() -> Message:
            """Return the next message, or a disconnect once the headers are sent."""
            incoming, over = (asyncio.ensure_future(receive()), asyncio.ensure_future(begun.wait()))
            try:
                await asyncio.wait((incoming, over), return_when=asyncio.FIRST_COMPLETED)
                return DISCONNECT if begun.is_set() else incoming.result()
            finally:
                incoming.cancel()
                over.cancel()

        async def without_body(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                begun.set()
            elif not message.get("more_body", False):
                await send({"type": "http.response.body", "body": b""})

        try:
            await self._app(got, received, without_body)
        finally:
            with suppress(KeyError):
                scope["route"] = got["route"]  # for the log


def allowed_methods(scope: Scope) -> list[str]:
    """Return the methods of this path, which several routes may share."""
    router: Router = scope["app"].router
    found = [method for method in METHODS if _has_route(router, {**scope, "method": method})]
    return ["HEAD", *found] if "GET" in found else found


def _has_route(router: Router, scope: Scope) -> bool:
    return any(route.matches(scope)[0] is Match.FULL for route in router.routes)


async def _error_response(request: Request, error: Exception) -> JSONResponse:
    match error:
        case BrainqError() | RequestRejected():
            return error_response(error)
        case RequestValidationError():
            return error_response(_first_invalid_field(error))
        case HTTPException(status_code=405):
            return _method_not_allowed(request)
        case HTTPException(status_code=404):
            return error_response(RequestRejected("no-such-route", "GET /v1/openapi.json lists all routes"))
        case HTTPException():
            return error_response(RequestRejected("bad-json", "send one JSON object, as UTF-8"))
        case _:
            raise error


def _method_not_allowed(request: Request) -> JSONResponse:
    methods = allowed_methods(request.scope)
    response = error_response(
        RequestRejected(
            "method-not-allowed", f"this route does not support {request.method}; it supports {', '.join(methods)}"
        )
    )
    response.headers["Allow"] = ", ".join(methods)
    return response


def _first_invalid_field(error: RequestValidationError) -> RequestRejected | InvalidInput:
    """Return the error of the first invalid field, with the name that was sent but without its value."""
    first: dict[str, Any] = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    if first["type"] == "json_invalid":
        return RequestRejected("bad-json", f"the body is not JSON after character {where[-1]}; send one JSON object")
    if len(where) == 1:
        return InvalidInput("body", "send one JSON object, with Content-Type: application/json")
    if where[0] != "body":
        return first_problem([first | {"loc": where[1:]}], dict.fromkeys(where[1:], ""))
    return first_problem([first | {"loc": first["loc"][1:]}], error.body)
