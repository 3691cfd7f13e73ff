"""`POST /mcp`: streamable HTTP. There is no stream to GET and no session to DELETE."""

from __future__ import annotations

import json
from typing import Any, cast

from fastapi import APIRouter, Depends, Request, Response
from starlette.types import Receive, Scope, Send

from brainq.http.gateway import asker
from brainq.http.mcp.front import McpFront

router = APIRouter(include_in_schema=False)  # its document is tools/list


class _Answered(Response):
    """The SDK's answer, written as it comes."""

    def __init__(self, front: McpFront, body: bytes, *, opens: bool) -> None:
        super().__init__()
        self._front = front
        self._given = body
        self._opens = opens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: bytes | None = self._given

        async def given() -> Any:
            nonlocal body
            if body is None:
                return await receive()
            told, body = body, None
            return {"type": "http.request", "body": told, "more_body": False}

        await self._front.answer(scope, given, send, opens=self._opens)


@router.post("/mcp", dependencies=[Depends(asker)])
async def ask(request: Request) -> Response:
    """One message of an MCP client. What a tool needs beside the verb `read` is in the table of tools."""
    front = cast("McpFront", request.app.state.mcp)
    front.require()
    body = await request.body()
    return _Answered(front, body, opens=_opens_a_session(body))


def _opens_a_session(body: bytes) -> bool:
    try:
        said: Any = json.loads(body)
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and cast("dict[str, Any]", said).get("method") == "initialize"
