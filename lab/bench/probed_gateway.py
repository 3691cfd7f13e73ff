"""`python -m lab.bench.probed_gateway`: a gateway that tells, at SIGUSR1, which parts of it used how much CPU.

It is `brainq.workers.gateway` with its functions wrapped at the seams below.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import fastapi.dependencies.utils
import fastapi.routing
from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.applications import Starlette
from starlette.routing import Router
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

import brainq.client.client
import brainq.gateway.rest.turns
from brainq.adapters.redis.async_connection import AsyncConnection
from brainq.adapters.redis.connection import Client as RedisClient
from brainq.adapters.redis.events import Follower
from brainq.adapters.redis.stream_reader import StreamReader
from brainq.adapters.redis.turns import RedisTurns
from brainq.adapters.sql.database import Database
from brainq.adapters.sql.repositories.turns import Turns
from brainq.client.async_handle import VerbThreads
from brainq.client.client import Client
from brainq.engine.people.intake import Intake
from brainq.gateway.edge.access import AccessMiddleware
from brainq.gateway.edge.limits import BodyLimitMiddleware
from brainq.gateway.rest.event_stream import EventStream
from brainq.runtime.observe.logs import EventLogger
from brainq.workers import gateway
from lab.bench.cpu_parts import SPENT_IN, CpuParts, wrap_all

LOOP = "event loop, sockets, tasks beside"
THREAD = "thread: to it and back"
UVICORN = "uvicorn, h11"
MIDDLEWARE = "middleware"
ACCESS = "access: host, token, rate"
LOG = "log line"
ROUTING = "routing"
HANDLER = "FastAPI: the route's handler"
PARAMETERS = "FastAPI: dependencies, headers"
BODY = "body: JSON, validation"
ROUTE = "the route's own"
ANSWER = "answer: JSON, headers"
CLIENT = "client"
REQUEST = "turn request: built, validated"
INTAKE = "intake, admission"
ROW = "SQL: hash, JSON, rows"
SQL = "SQL: statements, commit"
ARGUMENTS = "Redis: a script's arguments"
REDIS = "Redis: round trips"
FOLLOWING = "events: read, followed"
SENDING = "events: sent"


def places() -> list[tuple[str, Any, str]]:
    """Return part, owner and name of each function that begins a part."""
    stores: list[tuple[str, Any, str]] = [
        *((SQL, Database, name) for name in ("write", "write_returning", "first", "all")),
        *((ROW, Turns, name) for name in ("accept", "by_key", "get", "result", "find")),
        *((REDIS, RedisClient, name) for name in ("execute_command", "many", "replies")),
        (ARGUMENTS, RedisTurns, "submit"),
        (REDIS, AsyncConnection, "ask"),
        *((FOLLOWING, StreamReader, name) for name in ("newest", "look", "join", "part")),
        *((FOLLOWING, Follower, name) for name in ("next", "feed")),
    ]
    ours: list[tuple[str, Any, str]] = [
        (ACCESS, AccessMiddleware, "__call__"),
        (MIDDLEWARE, BodyLimitMiddleware, "__call__"),
        *((LOG, EventLogger, name) for name in ("info", "warning", "error")),
        (ANSWER, brainq.gateway.rest.turns, "_json_response"),
        *((THREAD, VerbThreads, name) for name in ("run_action", "run_lookup")),
        *((CLIENT, Client, name) for name in ("submit", "handle")),
        (REQUEST, brainq.client.client, "read_submit"),
        (INTAKE, Intake, "submit"),
        (SENDING, EventStream, "__call__"),
    ]
    frameworks: list[tuple[str, Any, str]] = [
        (UVICORN, H11Protocol, "data_received"),
        *((UVICORN, RequestResponseCycle, name) for name in ("run_asgi", "send")),
        (MIDDLEWARE, Starlette, "__call__"),
        (ROUTING, Router, "__call__"),
        (HANDLER, APIRoute, "handle"),
        (PARAMETERS, fastapi.routing, "solve_dependencies"),
        (BODY, fastapi.dependencies.utils, "request_body_to_args"),
        (BODY, Request, "json"),
        (ROUTE, fastapi.routing, "run_endpoint_function"),
        *((ANSWER, Response, name) for name in ("__init__", "__call__")),
    ]
    return stores + ours + frameworks


def main() -> None:
    parts = CpuParts(main=LOOP, other=THREAD)
    parts.tell_on_signal(Path(os.environ[SPENT_IN]))
    wrap_all(parts, places())
    gateway.main()


if __name__ == "__main__":
    main()
