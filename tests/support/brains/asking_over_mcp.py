"""A brain that passes the user's message to a brain of another deployment, as an MCP client of its gateway."""

from __future__ import annotations

import os

from brainq import Brain, McpServer, McpTool, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says

URL, CATALOGUE = "OTHER_URL", "OTHER_CATALOGUE"


def other(url: str) -> McpServer:
    return McpServer("other", url=url, tools={"obedient": McpTool(idempotent=True, timeout_s=60)})


def hand_over(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says(request.messages[-1].content)
    return calls(("other__obedient", {"message": request.messages[-1].content}))


brain = Brain(
    "outer",
    ScriptedProvider(rules=hand_over),
    mcp=[other(os.environ[URL])] if URL in os.environ else [],
    mcp_catalogue=os.environ.get(CATALOGUE, "mcp.lock.json"),
)
