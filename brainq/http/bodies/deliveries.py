"""How webhooks' deliveries are told."""

from __future__ import annotations

from datetime import datetime

from brainq.contracts.webhook import DeliveryState
from brainq.http.bodies.base import Answer


class Delivery(Answer):
    """What a webhook was, or is to be, sent. Of where to only the host is told: a path may hold a secret."""

    id: int
    message_id: str
    host: str
    event: str
    session_id: str
    turn_id: str
    state: DeliveryState
    tries: int
    due_at: datetime
    created_at: datetime
    updated_at: datetime
    error: str | None


class Deliveries(Answer):
    """The newest first; `next` is the next page's `before`."""

    deliveries: tuple[Delivery, ...]
    next: int | None
