"""A brain with the official memory server; its model creates the entity that the user names."""

from __future__ import annotations

import os

from brainq import Brain, McpServer, McpTool, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from tests.support.mcp_servers import npm


def remember(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says("Done.")
    name = request.messages[-1].content
    return calls(("memory__create_entities", {"entities": [{"name": name, "entityType": "x", "observations": []}]}))


LANE = os.environ.get("MEMORY_LANE")
brain = Brain(
    "memory",
    ScriptedProvider(rules=remember),
    mcp=[
        McpServer(
            "memory",
            [npm("mcp-server-memory")],
            env={"MEMORY_FILE_PATH": os.environ.get("MEMORY_FILE", "/nonexistent")},
            tools={"create_entities": McpTool(lane=LANE)} if LANE else {},
        )
    ],
    mcp_catalogue=os.environ.get("MEMORY_CATALOGUE", "mcp.lock.json"),
)
