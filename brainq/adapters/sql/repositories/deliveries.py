"""Webhook deliveries: which webhooks are sent what, and the jobs that send it. They hold no content of a turn."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import bindparam, func, literal_column, null, select

from brainq.adapters.sql.database import Database, Transaction
from brainq.adapters.sql.jobs import AFTER, JobTable
from brainq.adapters.sql.repositories.approvals import Approvals
from brainq.adapters.sql.statements import in_sessions, insert_or_ignore
from brainq.adapters.sql.tables import deliveries
from brainq.adapters.sql.tables.types import utc_now
from brainq.contracts.budgets import BudgetNotice
from brainq.contracts.ids import PREFIX_BOUNDARY, full_call_id, is_within
from brainq.contracts.people import ApprovalRequest
from brainq.contracts.turn import TurnResult
from brainq.contracts.webhook import DeliveryClaim, DeliveryRow, NewDelivery, Webhook, WebhookEvent
from brainq.engine.jobs import delivery_key

ANNOUNCE_AFTER_S = 1.0
"""The row is written before the call waits or the result is out: a receiver that came at once would find neither."""
CLAIM_CANDIDATES = 16  # rows a claim looks at: as many may be taken from under it before it looks again
_D = deliveries.c
_PENDING = _D.state == literal_column("'pending'")  # a literal: only then is the partial index used
_PLAN = insert_or_ignore(deliveries, fixed={"due_at": AFTER})
_DUE = (
    select(_D.row)
    .where(_PENDING, _D.url == bindparam("where"), _D.due_at <= utc_now())
    .order_by(_D.due_at, _D.row)
    .limit(bindparam("most"))
)
_MINE = select(_D.row).where(_D.row == bindparam("which"))
_NEWEST = (
    select(*(column for column in _D if column.name != "data_json")).order_by(_D.row.desc()).limit(bindparam("most"))
)
_COUNT = select(_D.state, func.count().label("rows")).where(_D.state != "done").group_by(_D.state)


def ending_deliveries(webhooks: Sequence[Webhook], result: TurnResult) -> list[NewDelivery]:
    """Return the deliveries about a turn that has ended."""
    data = {
        "turn_id": result.turn_id,
        "session_id": result.session_id,
        "ending": result.ending.value,
        "stop_reason": result.stop_reason.value,
    }
    return _subscribed_deliveries(webhooks, "turn.ended", result.session_id, result.turn_id, result.turn_id, data)


def approval_deliveries(webhooks: Sequence[Webhook], requests: Sequence[ApprovalRequest]) -> list[NewDelivery]:
    """Return the deliveries about calls that wait for approval. A call with the same arguments is delivered once."""
    return [
        delivery
        for call in requests
        for delivery in _subscribed_deliveries(
            webhooks,
            "approval.requested",
            call.session_id,
            call.turn_id,
            f"{call.turn_id} {call.call_id} {call.args_hash}",
            {
                "approval_id": full_call_id(call.turn_id, call.call_id),
                "turn_id": call.turn_id,
                "session_id": call.session_id,
                "call_id": call.call_id,
                "tool": call.tool,
                "effect": call.effect.value,
            },
        )
    ]


def budget_deliveries(webhooks: Sequence[Webhook], notice: BudgetNotice) -> list[NewDelivery]:
    """Return the deliveries about a budget that is nearly spent: to webhooks of all sessions, and, if the budget is a
    tenant's or a user's, to the webhooks of its sessions. A window with the same cap is delivered once."""
    kind, _, name = notice.scope.partition(" ")
    whose = name if kind in ("tenant", "user") and name != PREFIX_BOUNDARY else ""
    data = {
        "scope": notice.scope,
        "per": notice.per,
        "begins_at": f"{datetime.fromtimestamp(notice.start_ms / 1000, UTC):%Y-%m-%dT%H:%M:%SZ}",
        "cap_usd": notice.cap_usd,
        "granted_usd": notice.granted_usd,
    }
    what = f"{notice.scope}/{notice.per} {notice.start_ms} {notice.cap_usd!r}"
    return _subscribed_deliveries(webhooks, "budget.nearly_spent", whose, "", what, data)


def _subscribed_deliveries(
    webhooks: Sequence[Webhook],
    event: WebhookEvent,
    session_id: str,
    turn_id: str,
    what: str,
    data: Mapping[str, str | float],
) -> list[NewDelivery]:
    message_id = f"msg_{hashlib.sha256(f'{event} {what}'.encode()).hexdigest()[:32]}"
    return [
        NewDelivery(message_id, webhook.url, event, session_id, turn_id, json.dumps(data))
        for webhook in webhooks
        if event in webhook.events and is_within(webhook.sessions, session_id)
    ]


class Deliveries(JobTable):
    """The `deliveries` table. A delivery is `pending` until it is `done` (taken) or `dead` (given up)."""

    def __init__(self, database: Database) -> None:
        columns = (_D.row, _D.message_id, _D.event, _D.turn_id, _D.data_json, _D.created_at, utc_now().label("now"))
        super().__init__(database, deliveries, {"which": "row"}, *columns)
        self._plan = database.pick(_PLAN)
        self._done = self.settling({"state": "done", "error": null()})

    def plan(self, connection: Transaction, rows: Sequence[NewDelivery], after_s: float = 0.0) -> None:
        """Effect: plan these, to be sent after `after_s`. Those that are there stay as they are."""
        if rows:
            more = {"state": "pending", "seconds": after_s}
            connection.write_many(self._plan, [{**asdict(row), **more} for row in rows])

    def claim(self, url: str, lease_s: float) -> DeliveryClaim | None:
        """Claim for `lease_s` the delivery to this url that has been due longest. Returns None if none is due.

        While nothing is due it only reads: a write would keep others from a SQLite file.
        """
        for due in self._db.all(_DUE, {"where": url, "most": CLAIM_CANDIDATES}):
            if (found := self.take(delivery_key(due["row"]), lease_s)) is not None:
                return DeliveryClaim(**found)
        return None

    def done(self, row: int) -> bool:
        """Record that the receiver took it. Returns False, and changes nothing, unless it was pending."""
        return self._db.write(self._done, delivery_key(row)) == 1

    def revive(self, row: int, sessions: Sequence[str] | None = None) -> bool:
        """Make a dead delivery due, its tries counted anew.

        sessions   prefixes: only if it is about a session that begins with one of them

        Returns False if it is not dead, or about another session.
        """
        key = delivery_key(row)
        if sessions is not None and not self._db.first(_MINE.where(in_sessions(_D.session_id, sessions)), key):
            return False
        return self.revive_job(key)

    def list(
        self,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> list[DeliveryRow]:
        """List the newest first, those before `before_row` if given.

        sessions   prefixes: only deliveries about sessions that begin with one of them
        """
        statement = _NEWEST
        if state is not None:
            statement = statement.where(_D.state == state)
        if before_row is not None:
            statement = statement.where(_D.row < before_row)
        if sessions is not None:
            statement = statement.where(in_sessions(_D.session_id, sessions))
        return [DeliveryRow(**found) for found in self._db.all(statement, {"most": limit})]

    def unsettled(self) -> dict[str, int]:
        """Count the pending and the dead."""
        counts = {"pending": 0, "dead": 0}
        return counts | {found["state"]: int(found["rows"]) for found in self._db.all(_COUNT, {})}


class AnnouncingApprovals(Approvals):
    """The `approvals` table. It plans the deliveries of a request in the request's transaction."""

    def __init__(self, database: Database, deliveries: Deliveries, webhooks: Sequence[Webhook]) -> None:
        super().__init__(database)
        self._deliveries = deliveries
        self._webhooks = tuple(webhooks)

    def write(self, connection: Transaction, rows: Sequence[ApprovalRequest]) -> None:
        super().write(connection, rows)
        self._deliveries.plan(connection, approval_deliveries(self._webhooks, rows), ANNOUNCE_AFTER_S)


class BudgetNotices:
    """The deliveries of budgets' notices. They are planned in the transaction that grants the first dollar beyond four
    fifths of a window: if several processes do so at once, one of them delivers.
    """

    def __init__(self, deliveries: Deliveries, webhooks: Sequence[Webhook]) -> None:
        self._deliveries = deliveries
        self._webhooks = tuple(webhooks)

    def plan(self, connection: Transaction, notice: BudgetNotice) -> None:
        """Effect: notify people if the transaction commits."""
        self._deliveries.plan(connection, budget_deliveries(self._webhooks, notice))
