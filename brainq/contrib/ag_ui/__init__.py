"""The Agent User Interaction Protocol 1.0 (AG-UI), which CopilotKit and `@ag-ui/client` speak."""

from __future__ import annotations

from brainq.gateway.edge.request import Gateway
from brainq.gateway.wire import Wire


def open_wire(gateway: Gateway) -> Wire:
    """Return the wire, which is always on."""
    from brainq.contrib.ag_ui.routes import VERBS, router

    return Wire("ag_ui", router, VERBS)
