"""`python -m lab.bench.bare PORT PARSER`: FastAPI routes with nothing behind them, to hold the gateway against.

uvicorn is set as the gateway sets it. PARSER is `gateway` for the gateway's own connection, on h11, or `httptools`.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncGenerator
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from brainq.gateway.server import TimedConnection

EVENT = b'id: 1\ndata: {"seq":1,"kind":"turn.active","at_ms":1760000000000,"data":{}}\n\n'


class Asked(BaseModel):
    """The body of a request."""

    session_id: str
    user_message: str


class Accepted(BaseModel):
    """The body of the immediate answer."""

    turn_id: str
    session_id: str
    created: bool


class Result(BaseModel):
    """The body of the final answer."""

    turn_id: str
    text: str


app = FastAPI(openapi_url=None)


@app.post("/v1/turns", status_code=202)
async def submit(body: Asked) -> Accepted:
    return Accepted(turn_id="t-1", session_id=body.session_id, created=True)


@app.get("/v1/turns/{turn_id}/result")
async def result(turn_id: str) -> Result:
    return Result(turn_id=turn_id, text="Done.")


@app.get("/v1/turns/{turn_id}/events")
async def events(turn_id: str) -> StreamingResponse:
    return StreamingResponse(_follow(), media_type="text/event-stream")


async def _follow() -> AsyncGenerator[bytes]:
    yield EVENT
    await asyncio.Event().wait()  # until its reader has gone


class Server(uvicorn.Server):
    """A server of uvicorn that reports when it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print("listening", flush=True)


def main(port: int, parser: str) -> None:
    http: Any = TimedConnection if parser == "gateway" else parser
    Server(
        uvicorn.Config(
            app,
            port=port,
            http=http,
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
    ).run()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
