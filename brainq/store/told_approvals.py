"""Approvals that webhooks are told of."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.contracts.approval import AskedCall
from brainq.contracts.webhook import Webhook
from brainq.store.announce import TOLD_AFTER_S, of_approvals
from brainq.store.database import Database, Transaction
from brainq.store.repositories.approvals import Approvals
from brainq.store.repositories.deliveries import Deliveries


class ToldApprovals(Approvals):
    """The `approvals` table, and, in the same transaction as what people are asked, what webhooks are told of it."""

    def __init__(self, database: Database, deliveries: Deliveries, webhooks: Sequence[Webhook]) -> None:
        super().__init__(database)
        self._deliveries = deliveries
        self._webhooks = tuple(webhooks)

    def write(self, connection: Transaction, rows: Sequence[AskedCall]) -> None:
        super().write(connection, rows)
        self._deliveries.plan(connection, of_approvals(self._webhooks, rows), TOLD_AFTER_S)
