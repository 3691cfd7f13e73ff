"""The MCP server that is restarted, and the model that orders there."""

from __future__ import annotations

import time

from brainq import Effect, McpServer, McpTool, ModelReply, ModelRequest
from brainq.testing import calls, says

MCP_URL, MCP_LOCK = "FAULTS_MCP_URL", "FAULTS_MCP_LOCK"
THINKS_S, PAUSE_S = 0.1, 0.7
AGAIN = "You may try again."


def mcp_shop(url: str) -> McpServer:
    return McpServer("shop", url=url, tools={"order": McpTool(effect=Effect.NETWORK)})


def answer(request: ModelRequest) -> ModelReply:
    """Order once, with the turn's id as the number, and once more if the tool says that nothing ran."""
    told = request.messages[-1]
    is_refused = told.role == "tool" and told.content.endswith(AGAIN)
    time.sleep(PAUSE_S if is_refused else THINKS_S)
    if request.step == 1 or is_refused:
        return calls(("shop__order", {"sku": request.turn_id}))
    return says("done")
