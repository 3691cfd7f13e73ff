"""A shop over HTTP that forgets its sessions, or answers calls with a chosen status."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.support.mcp_servers.over_http import ShopOverHttp


@dataclass(frozen=True)
class Answer:
    """The answer in place of the shop's own. `{id}` in the body is the id of the request."""

    status: int
    body: str = ""
    content_type: str = "application/json"


class ForgetfulShop(ShopOverHttp):
    """A shop that forgets.

    opened: the sessions that were opened.
    gone: the answer to requests of forgotten sessions.
    refusal: the answer to calls, whatever their session.
    refused: how many calls were answered by `gone` or `refusal`.
    """

    def __init__(self, port: int = 0) -> None:
        super().__init__(port)
        self.opened: list[str] = []
        self.gone: Answer | None = None
        self.refusal: Answer | None = None
        self.refused = 0
        self._known: set[str] = set()

    def forget(self, gone: Answer) -> None:
        self.gone = gone
        self._known.clear()

    def app(self) -> Any:
        app = super().app()

        async def forgetting(scope: dict[str, Any], receive: Any, send: Any) -> None:
            if scope["type"] != "http":
                await app(scope, receive, send)
                return
            session = dict(scope["headers"]).get(b"mcp-session-id", b"").decode()
            message = await receive()
            call = json.loads(message.get("body") or "{}")
            is_call = call.get("method") == "tools/call"
            if call.get("method") == "server/discover":  # a protocol without sessions is not spoken here
                await _send(send, Answer(400), None)
                return
            answer = self.gone if session and session not in self._known else None
            answer = self.refusal if is_call and self.refusal is not None else answer
            if answer is not None:
                self.refused += is_call
                await _send(send, answer, call.get("id"))
                return
            sent_body = False

            async def again() -> Any:
                nonlocal sent_body
                if sent_body:
                    return await receive()
                sent_body = True
                return message

            async def noting(event: dict[str, Any]) -> None:
                headers = dict(event.get("headers", ()))
                if not session and b"mcp-session-id" in headers:
                    self.opened.append(headers[b"mcp-session-id"].decode())
                    self._known.add(self.opened[-1])
                await send(event)

            await app(scope, again, noting)

        return forgetting


async def _send(send: Any, answer: Answer, request_id: object) -> None:
    body = answer.body.replace("{id}", json.dumps(request_id)).encode()
    headers = [(b"content-type", answer.content_type.encode())] if answer.content_type else []
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
