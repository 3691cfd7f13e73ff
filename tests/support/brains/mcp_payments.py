"""A brain with the payment server; its model charges the customer that the user names, once."""

from __future__ import annotations

import os

from brainq import Brain, McpServer, McpTool, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.mcp_servers import payments


def pay(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says("Done.")
    return calls(("payments__charge", {"customer": request.messages[-1].content, "cents": 500}))


def server(folder: str, key_argument: str | None) -> McpServer:
    return payments(folder, {"charge": McpTool(idempotency_argument=key_argument)})


brain = Brain(
    "payments",
    ScriptedProvider(rules=pay),
    mcp=[server(os.environ.get("PAYMENTS", "/nonexistent"), os.environ.get("PAYMENTS_KEY") or None)],
    mcp_catalogue=os.environ.get("PAYMENTS_CATALOGUE", "mcp.lock.json"),
)
