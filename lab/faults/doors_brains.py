"""The shop's brain as the workers have it, beside one whose model answers without end, and one with an MCP server."""

from __future__ import annotations

import os

from brainq import Brain
from brainq.testing import ScriptedProvider
from lab.faults.brain import brain
from lab.faults.doors import MCP_LOCK, MCP_URL, answer, mcp_shop

teller = Brain("teller", "openai:stand-in")
caller = Brain(
    "caller", ScriptedProvider(rules=answer), mcp=[mcp_shop(os.environ[MCP_URL])], mcp_catalogue=os.environ[MCP_LOCK]
)
brains = [brain, teller, caller]
