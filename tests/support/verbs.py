"""The verbs of all routes: the gateway's own and those of each wire."""

from __future__ import annotations

from brainq.contrib.a2a.routes import VERBS as A2A_VERBS
from brainq.contrib.ag_ui.routes import VERBS as AG_UI_VERBS
from brainq.contrib.ai_sdk.routes import VERBS as AI_SDK_VERBS
from brainq.contrib.mcp_server.routes import VERBS as MCP_VERBS
from brainq.gateway.edge.access import VERBS as OWN_VERBS

DOCUMENTED_VERBS = OWN_VERBS | AI_SDK_VERBS | AG_UI_VERBS
"""Those in the OpenAPI document."""
ALL_VERBS = DOCUMENTED_VERBS | A2A_VERBS | MCP_VERBS
