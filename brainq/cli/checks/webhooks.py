"""Webhooks: how many there are, and whether they take what they are sent."""

from __future__ import annotations

from collections.abc import Iterator

from brainq.contracts.webhook import read_webhooks
from brainq.preflight.check import Check, ok, warn
from brainq.settings import Settings


def check_webhooks(settings: Settings) -> Iterator[Check]:
    """Nothing of a deployment without webhooks. The schema is this brainq's."""
    from brainq.store.store import Store

    webhooks = read_webhooks(settings.webhooks.get_secret_value())
    if not webhooks:
        return
    with Store.open(settings.sql_url.get_secret_value(), migrate=False) as store:
        unsettled = store.deliveries.unsettled()
    said = f"{len(webhooks)} configured, {unsettled['pending']} to be sent, {unsettled['dead']} dead"
    if unsettled["dead"]:
        yield warn(
            "webhooks",
            said,
            "`brainq webhook list --state dead` says why; `brainq webhook retry all` sends again",
        )
    else:
        yield ok("webhooks", said)
