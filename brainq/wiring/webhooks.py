"""Which webhooks a deployment has, and what tells them of approvals."""

from __future__ import annotations

from brainq.contracts.webhook import Webhook, read_webhooks
from brainq.settings import Settings
from brainq.store.store import Store
from brainq.store.told_approvals import ToldApprovals


def webhooks_of(settings: Settings) -> tuple[Webhook, ...]:
    return read_webhooks(settings.webhooks.get_secret_value())


def told_approvals(settings: Settings, store: Store) -> ToldApprovals:
    return ToldApprovals(store.database, store.deliveries, webhooks_of(settings))
