"""The UI message stream of the AI SDK, which `useChat` speaks."""

from __future__ import annotations

from brainq.gateway.edge.request import Gateway
from brainq.gateway.wire import Wire


def open_wire(gateway: Gateway) -> Wire:
    """Return the wire, which is always on."""
    from brainq.contrib.ai_sdk.routes import VERBS, router

    return Wire("ai_sdk", router, VERBS)
