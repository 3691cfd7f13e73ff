"""What webhooks were, or are to be, sent: asked of SQL alone, so that an operator may while Redis is away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from brainq.client import checks
from brainq.contracts.session_prefix import check_prefixes
from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.errors import InvalidInput
from brainq.store.store import Store


def list_deliveries(
    store: Store, state: str | None, limit: int, sessions: Sequence[str] | None, before: int | None = None
) -> list[DeliveryRow]:
    """See `Client.deliveries`."""
    if state not in (None, *get_args(DeliveryState)):
        raise InvalidInput("state", f"{state!r} is none of {', '.join(get_args(DeliveryState))}")
    theirs = None if sessions is None else check_prefixes("session_prefixes", sessions)
    return store.deliveries.list(state, checks.limit(limit), before, sessions=theirs)
