"""Builds what sends to webhooks."""

from __future__ import annotations

from brainq.settings import Settings
from brainq.store.store import Store
from brainq.webhooks.sender import WebhookSender
from brainq.wiring.webhooks import webhooks_of


def make_sender(settings: Settings, store: Store) -> WebhookSender:
    return WebhookSender(
        webhooks=webhooks_of(settings), rows=store.deliveries, request_of=store.turns.request
    )
