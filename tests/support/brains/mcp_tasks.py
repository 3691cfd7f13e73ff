"""A brain with the server whose tools run as tasks; its model has one researched."""

from __future__ import annotations

import os

from brainq import Brain, McpServer, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says


def research(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says(f"Read: {request.messages[-1].content}")
    return calls(("lab__research", {"topic": request.messages[-1].content}))


brain = Brain(
    "lab",
    ScriptedProvider(rules=research),
    mcp=[McpServer("lab", url=os.environ.get("LAB_URL", "http://127.0.0.1:1/mcp"))],
    mcp_catalogue=os.environ.get("LAB_CATALOGUE", "mcp.lock.json"),
)
