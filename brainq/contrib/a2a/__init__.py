"""A2A 1.0, the protocol between agents: a context is a session, a task is a turn. Needs the extra `a2a`.

This wire uses the SDK's types but not its server. That server keeps tasks and queues in its own process, whereas brainq
keeps them in Redis; its streams ignore the gateway's limits and its shutdown; and it logs the content of requests.
"""

from __future__ import annotations

import importlib.util

from brainq.errors import SetupError
from brainq.gateway.edge.request import Gateway
from brainq.gateway.wire import Wire


def open_wire(gateway: Gateway) -> Wire | None:
    """Return the wire if BRAINQ_HTTP_A2A is set. Raises SetupError without the extra."""
    if not gateway.settings.http_a2a:
        return None
    if importlib.util.find_spec("a2a") is None:
        raise SetupError(
            "BRAINQ_HTTP_A2A is set, but the extra for A2A is not installed: pip install 'brainq[http,a2a]'"
        )
    from brainq.contrib.a2a.routes import VERBS, router

    return Wire("a2a", router, VERBS)
