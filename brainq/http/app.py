"""The gateway as an ASGI application."""

from __future__ import annotations

import functools
import importlib.util
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from inspect import signature
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from brainq import __version__
from brainq.contracts.first_wrong import first_wrong
from brainq.errors import BrainqError, InvalidInput, SetupError
from brainq.http import (
    approvals,
    brains,
    deliveries,
    health,
    lists,
    memories,
    metrics,
    schedules,
    sessions,
    turn_people,
    turns,
)
from brainq.http.ag_ui import routes as ag_ui
from brainq.http.ai_sdk import routes as ai_sdk
from brainq.http.body_limit import BodyLimit
from brainq.http.door import Answered, Door
from brainq.http.gateway import Gateway, asker
from brainq.http.mcp import routes as mcp
from brainq.http.mcp.front import McpFront
from brainq.http.methods import HeadAsGet, allowed
from brainq.http.openai import chat, models, responses
from brainq.http.openai.errors import OpenAiErrors, refusals
from brainq.http.openai.tries import RefusedTry, Tries
from brainq.http.openapi import described
from brainq.http.page import routes as page
from brainq.http.problems import Refused, answer_of, documented
from brainq.http_settings import listed

ROUTERS = (
    brains.router,
    turns.router,
    turn_people.router,
    approvals.router,
    sessions.router,
    lists.router,
    schedules.router,
    deliveries.router,
    memories.router,
    metrics.router,
    ai_sdk.router,
    ag_ui.router,
)
EXPOSED = (
    "Allow",
    "Location",
    "Mcp-Session-Id",
    "Preference-Applied",
    "Retry-After",
    "X-Request-ID",
    "X-Should-Retry",
    "X-Vercel-AI-UI-Message-Stream",
)
"""What a page of another origin may read of an answer's headers."""
STATUSES = (400, 401, 403, 404, 405, 408, 413, 421, 422, 429, 500, 502, 503, 504)
COMMON = documented(*STATUSES)
OPENAI = (chat.router, responses.router, models.router)


def _without_telemetry() -> dict[str, Any]:
    """Newer versions of FastAPI record three spans a request, with its query, and write exceptions into logs."""
    known = "telemetry" in signature(FastAPI).parameters
    return {"telemetry": {"tracing": False, "metrics": False, "logs": False}} if known else {}


def make_app(gateway: Gateway) -> FastAPI:
    """The routes behind the door. Closes the gateway's client when it ends, and begins no more long work."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await app.state.mcp.close()
            gateway.long_work.shutdown(wait=False, cancel_futures=True)
            await gateway.client.close()

    app = FastAPI(
        title="brainq",
        version=__version__,
        openapi_url=None,  # FastAPI would write the document anew for each who asks
        redirect_slashes=False,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=dict(COMMON),
        **_without_telemetry(),
    )
    app.state.gateway = gateway
    app.state.mcp = McpFront(gateway)
    for router in ROUTERS:
        app.include_router(router, dependencies=[Depends(asker)])
    for router in OPENAI:
        app.include_router(router, dependencies=[Depends(asker)], responses=refusals(*STATUSES))
    app.include_router(health.router)
    app.include_router(page.router)
    app.include_router(mcp.router)
    if gateway.settings.http_a2a:
        app.include_router(_a2a_router())
    for error in (BrainqError, Refused, RequestValidationError, HTTPException):
        app.add_exception_handler(error, _told)
    settings = gateway.settings
    # The last one that is added is the first that a request meets.
    most_bytes, within_s = settings.http_body_bytes, settings.http_slow_s
    refused = BodyLimit(RefusedTry(gateway), most_bytes, within_s)
    app.add_middleware(HeadAsGet)
    app.add_middleware(Tries, gateway=gateway)
    app.add_middleware(BodyLimit, most_bytes=most_bytes, within_s=within_s)
    app.add_middleware(Door, gateway=gateway, refused=refused)
    if origins := listed(settings.http_cors):
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=["GET", "HEAD", "POST", "DELETE"],
            # Any: a caller is known by its token, which no other page has, and clients add headers with each release.
            allow_headers=["*"],
            expose_headers=EXPOSED,
        )
    app.add_middleware(Answered)
    app.add_middleware(OpenAiErrors)
    app.openapi = lambda: described(app)
    app.add_route("/v1/openapi.json", _document(app), methods=["GET"], include_in_schema=False)
    return app


def _document(app: FastAPI) -> Callable[[Request], Awaitable[Response]]:
    """The OpenAPI document, written once: nobody is asked who he is there, nor counted."""
    written = functools.cache(lambda: json.dumps(app.openapi(), separators=(",", ":")).encode())

    async def document(request: Request) -> Response:
        return Response(written(), media_type="application/json")

    return document


def _a2a_router() -> APIRouter:
    """Imported here: protobuf and Google's types are for who speaks A2A. Raises SetupError without the extra."""
    if importlib.util.find_spec("a2a") is None:
        raise SetupError("BRAINQ_HTTP_A2A is set, and A2A needs an extra: pip install 'brainq[http,a2a]'")
    from brainq.http.a2a.routes import router

    return router


async def _told(request: Request, error: Exception) -> JSONResponse:
    match error:
        case BrainqError() | Refused():
            return answer_of(error)
        case RequestValidationError():
            return answer_of(_first_wrong(error))
        case HTTPException(status_code=405):
            return _no_such_method(request)
        case HTTPException(status_code=404):
            return answer_of(Refused("no-such-route", "GET /v1/openapi.json has all routes"))
        case HTTPException():
            return answer_of(Refused("bad-json", "send one JSON object, as UTF-8"))
        case _:
            raise error


def _no_such_method(request: Request) -> JSONResponse:
    found = allowed(request.scope)
    told = answer_of(
        Refused(
            "method-not-allowed",
            f"this route does not support {request.method}; it supports {', '.join(found)}",
        )
    )
    told.headers["Allow"] = ", ".join(found)
    return told


def _first_wrong(error: RequestValidationError) -> Refused | InvalidInput:
    """The first field that is wrong, by the name its sender gave it. Never what was sent."""
    first: dict[str, Any] = error.errors()[0]
    where = [str(part) for part in first["loc"]]
    if first["type"] == "json_invalid":
        return Refused("bad-json", f"it is no JSON from character {where[-1]} on; send one JSON object")
    if len(where) == 1:
        return InvalidInput("body", "send one JSON object, with Content-Type: application/json")
    if where[0] != "body":
        return first_wrong([first | {"loc": where[1:]}], dict.fromkeys(where[1:], ""))
    return first_wrong([first | {"loc": first["loc"][1:]}], error.body)
