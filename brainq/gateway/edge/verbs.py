"""The verb that each route requires. A route that is missing in this table is refused to all callers."""

from __future__ import annotations

import re

from brainq.access import Verb

AGENT_CARD_PATH = "/.well-known/agent-card.json"
"""The end of the paths of A2A's public agent cards, where that wire is on."""
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/v1/openapi.json"})
PUBLIC_PREFIX = "/page/"
_AGENT_CARD = re.compile(rf"(/a2a/[^/]+)?{re.escape(AGENT_CARD_PATH)}")


def is_public(path: str) -> bool:
    """Whether this path needs no token: it shows no tenant's data."""
    # The whole path is matched: the route of outside tokens accepts any end.
    return path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIX) or _AGENT_CARD.fullmatch(path) is not None


CONFIGURE_OPTIONS = frozenset({"model", "provider", "system_prompt", "skill_context", "cwd", "limits", "options"})
"""Options of a turn that need `configure` beside `submit`: they change its cost, its reach and its system prompt."""

VERBS: dict[str, Verb] = {
    "GET /v1/brains": Verb.READ,
    "GET /v1/caller": Verb.READ,
    "POST /v1/turns": Verb.SUBMIT,
    "GET /v1/turns": Verb.READ,
    "GET /v1/sessions": Verb.READ,
    "GET /v1/fleet": Verb.OPERATE,
    "GET /v1/fleet/activity": Verb.OPERATE,
    "GET /metrics": Verb.METRICS,
    "GET /v1/turns/{turn_id}": Verb.READ,
    "GET /v1/turns/{turn_id}/request": Verb.READ,
    "GET /v1/turns/{turn_id}/children": Verb.READ,
    "GET /v1/turns/{turn_id}/explain": Verb.READ,
    "GET /v1/turns/{turn_id}/result": Verb.READ,
    "GET /v1/turns/{turn_id}/timeline": Verb.READ,
    "GET /v1/turns/{turn_id}/decision": Verb.READ,
    "GET /v1/turns/{turn_id}/transcript": Verb.READ,
    "GET /v1/turns/{turn_id}/files/{sha256}": Verb.READ,
    "GET /v1/turns/{turn_id}/calls": Verb.READ,
    "GET /v1/turns/{turn_id}/events": Verb.READ,
    "POST /v1/turns/{turn_id}/input": Verb.STEER,
    "GET /v1/turns/{turn_id}/input/{client_message_id}": Verb.READ,
    "POST /v1/turns/{turn_id}/calls/{call_id}/result": Verb.STEER,
    "POST /v1/turns/{turn_id}/cancel": Verb.STEER,
    "GET /v1/turns/{turn_id}/holds": Verb.READ,
    "POST /v1/turns/{turn_id}/holds": Verb.STEER,
    "DELETE /v1/turns/{turn_id}/holds/{hold_id}": Verb.STEER,
    "GET /v1/turns/{turn_id}/approvals": Verb.READ,
    "POST /v1/turns/{turn_id}/finalizer/retry": Verb.OPERATE,
    "GET /v1/approvals": Verb.READ,
    "GET /v1/approvals/{approval_id}": Verb.READ,
    "POST /v1/approvals/{approval_id}/approve": Verb.DECIDE,
    "POST /v1/approvals/{approval_id}/deny": Verb.DECIDE,
    "POST /v1/approvals/{approval_id}/edit": Verb.DECIDE,
    "POST /v1/outside/{token}": Verb.DECIDE,
    "GET /v1/sessions/{session_id}": Verb.READ,
    "GET /v1/sessions/{session_id}/history": Verb.READ,
    "POST /v1/sessions/{session_id}/input": Verb.STEER,
    "POST /v1/sessions/{session_id}/pause": Verb.STEER,
    "POST /v1/sessions/{session_id}/resume": Verb.STEER,
    "POST /v1/sessions/{session_id}/interrupt": Verb.STEER,
    "DELETE /v1/sessions/{session_id}/waiting/{turn_id}": Verb.STEER,
    "POST /v1/sessions/{session_id}/flags": Verb.STEER,
    "DELETE /v1/sessions/{session_id}/flags/{flag_id}": Verb.STEER,
    "POST /v1/sessions/{session_id}/compact": Verb.SUBMIT,
    "POST /v1/schedules": Verb.SUBMIT,
    "GET /v1/schedules": Verb.READ,
    "GET /v1/schedules/{name}": Verb.READ,
    "POST /v1/schedules/{name}/pause": Verb.SUBMIT,
    "POST /v1/schedules/{name}/resume": Verb.SUBMIT,
    "DELETE /v1/schedules/{name}": Verb.SUBMIT,
    "GET /v1/memories": Verb.READ,
    "DELETE /v1/memories/{memory_id}": Verb.STEER,
    "DELETE /v1/memories": Verb.STEER,
    "GET /v1/webhooks/deliveries": Verb.OPERATE,
    "POST /v1/webhooks/deliveries/{delivery_id}/retry": Verb.OPERATE,
    "POST /api/chat": Verb.SUBMIT,
    "GET /api/chat/{session_id}/stream": Verb.READ,
    "POST /api/chat/{session_id}/stop": Verb.STEER,
    "POST /agui": Verb.SUBMIT,
    "POST /agui/{brain}": Verb.SUBMIT,
    "POST /v1/chat/completions": Verb.SUBMIT,
    "POST /v1/responses": Verb.SUBMIT,
    "GET /v1/responses/{response_id}": Verb.READ,
    "DELETE /v1/responses/{response_id}": Verb.STEER,
    "GET /v1/responses/{response_id}/input_items": Verb.READ,
    "POST /v1/responses/{response_id}/cancel": Verb.STEER,
    "GET /v1/models": Verb.READ,
    "GET /v1/models/{model}": Verb.READ,
}

A2A_VERBS: dict[str, Verb] = {"POST /a2a/{brain}": Verb.READ}
"""The verb of every request of A2A, where that wire is on; some of its methods need more."""
MCP_VERBS: dict[str, Verb] = {"POST /mcp": Verb.READ}
"""The verb of every request of MCP; most of its tools need more."""
