"""Webhook deliveries: which webhooks are sent what, and a job table on the database's own clock. No content of
a turn is in them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import Float, bindparam, func, literal_column, null, select, update

from brainq.contracts.budgets import BudgetNotice
from brainq.contracts.ids import PREFIX_BOUNDARY, full_call_id, is_within
from brainq.contracts.people import ApprovalRequest
from brainq.contracts.turn import TurnResult
from brainq.contracts.webhook import DeliveryClaim, DeliveryRow, NewDelivery, Webhook, WebhookEvent
from brainq.store.database import Database, Transaction
from brainq.store.repositories.approvals import Approvals
from brainq.store.repositories.budgets import Budgets
from brainq.store.statements import in_sessions, insert_or_ignore
from brainq.store.tables import deliveries
from brainq.store.tables.types import utc_after, utc_now

ANNOUNCE_AFTER_S = 1.0
"""The row is there a moment before the call waits, or the result is out: an immediate delivery would find neither."""
CLAIM_CANDIDATES = 16  # rows a claim looks at: as many may be taken from under it before it looks again
_D = deliveries.c
_PENDING = _D.state == literal_column("'pending'")  # a literal: only so the partial index is used
_AFTER = utc_after(bindparam("seconds", type_=Float()))
_HERE = _D.row == bindparam("which")
_PLAN = insert_or_ignore(deliveries, fixed={"due_at": _AFTER})
_DUE = (
    select(_D.row)
    .where(_PENDING, _D.url == bindparam("where"), _D.due_at <= utc_now())
    .order_by(_D.due_at, _D.row)
    .limit(bindparam("most"))
)
_CLAIM = (
    update(deliveries)
    .where(_HERE, _PENDING, _D.due_at <= utc_now())
    .values(tries=_D.tries + 1, due_at=_AFTER, updated_at=utc_now())
    .returning(
        _D.row, _D.message_id, _D.event, _D.turn_id, _D.data_json, _D.tries, _D.created_at, utc_now().label("now")
    )
)
_DONE = update(deliveries).where(_HERE, _PENDING).values(state="done", error=null(), updated_at=utc_now())
_FAIL = (
    update(deliveries).where(_HERE, _PENDING, _D.tries == bindparam("nth")).values(due_at=_AFTER, updated_at=utc_now())
)
_DEAD = _D.state == literal_column("'dead'")
_AGAIN = {"state": "pending", "tries": 0, "due_at": utc_now(), "updated_at": utc_now()}
_REVIVE = update(deliveries).where(_HERE, _DEAD).values(_AGAIN)
_REVIVE_ALL = update(deliveries).where(_DEAD).values(_AGAIN)
_NEWEST = (
    select(*(column for column in _D if column.name != "data_json")).order_by(_D.row.desc()).limit(bindparam("most"))
)
_COUNT = select(_D.state, func.count().label("rows")).where(_D.state != "done").group_by(_D.state)


def ending_deliveries(webhooks: Sequence[Webhook], result: TurnResult) -> list[NewDelivery]:
    """What is sent of a turn that has ended."""
    data = {
        "turn_id": result.turn_id,
        "session_id": result.session_id,
        "ending": result.ending.value,
        "stop_reason": result.stop_reason.value,
    }
    return _subscribed_deliveries(webhooks, "turn.ended", result.session_id, result.turn_id, result.turn_id, data)


def approval_deliveries(webhooks: Sequence[Webhook], requests: Sequence[ApprovalRequest]) -> list[NewDelivery]:
    """What is sent of calls that people are asked about. The same call with the same arguments is delivered once."""
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
    """What is sent of a budget that is nearly spent: to webhooks of all sessions; one of a tenant or user to its own,
    too. The same window with the same cap is delivered once."""
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


class Deliveries:
    """The `deliveries` table. A delivery is `pending` until it is `done` (taken) or `dead` (given up)."""

    def __init__(self, database: Database) -> None:
        self._db = database
        self._plan = database.pick(_PLAN)

    def plan(self, connection: Transaction, rows: Sequence[NewDelivery], after_s: float = 0.0) -> None:
        """Effect: these are to be sent, not before `after_s`; those that are there stay as they are."""
        if rows:
            more = {"state": "pending", "seconds": after_s}
            connection.write_many(self._plan, [{**asdict(row), **more} for row in rows])

    def claim(self, url: str, lease_s: float) -> DeliveryClaim | None:
        """Take what is due for this url longest, for `lease_s`; None: nothing is. Of several at once, one gets it.

        It only looks while nothing is due: a write would keep others from a SQLite file.
        """
        for due in self._db.all(_DUE, {"where": url, "most": CLAIM_CANDIDATES}):
            found = self._db.write_returning(_CLAIM, {"which": due["row"], "seconds": lease_s})
            if found is not None:
                return DeliveryClaim(**found)
        return None

    def done(self, row: int) -> bool:
        """It was taken; False, and nothing changed, unless it was pending."""
        return self._db.write(_DONE, {"which": row}) == 1

    def fail(self, row: int, tries: int, error: str, again_after_s: float, dead: bool) -> bool:
        """A try failed: the next is due after `again_after_s`, or (`dead`) there is none. `tries` is the number that
        `claim` gave: a try that lost its lease to a later one changes nothing."""
        values = {"state": "dead" if dead else "pending", "error": error}
        return self._db.write(_FAIL, {"which": row, "nth": tries, "seconds": again_after_s, **values}) == 1

    def revive(self, row: int, sessions: Sequence[str] | None = None) -> bool:
        """A dead delivery is due again, its tries counted anew; False if it was not dead, or of no such session."""
        mine = _REVIVE if sessions is None else _REVIVE.where(in_sessions(_D.session_id, sessions))
        return self._db.write(mine, {"which": row}) == 1

    def revive_all(self) -> int:
        """How many were dead and are due again."""
        return self._db.write(_REVIVE_ALL, {})

    def list(
        self,
        state: str | None = None,
        limit: int = 50,
        before_row: int | None = None,
        sessions: Sequence[str] | None = None,
    ) -> list[DeliveryRow]:
        """The newest first; the next page begins `before_row` of the last one here. `sessions`: only of those that
        begin with one of these prefixes."""
        statement = _NEWEST
        if state is not None:
            statement = statement.where(_D.state == state)
        if before_row is not None:
            statement = statement.where(_D.row < before_row)
        if sessions is not None:
            statement = statement.where(in_sessions(_D.session_id, sessions))
        return [DeliveryRow(**found) for found in self._db.all(statement, {"most": limit})]

    def unsettled(self) -> dict[str, int]:
        """How many are pending and dead."""
        counts = {"pending": 0, "dead": 0}
        return counts | {found["state"]: int(found["rows"]) for found in self._db.all(_COUNT, {})}


class AnnouncingApprovals(Approvals):
    """The `approvals` table, and, in the same transaction as each request, its deliveries to webhooks."""

    def __init__(self, database: Database, deliveries: Deliveries, webhooks: Sequence[Webhook]) -> None:
        super().__init__(database)
        self._deliveries = deliveries
        self._webhooks = tuple(webhooks)

    def write(self, connection: Transaction, rows: Sequence[ApprovalRequest]) -> None:
        super().write(connection, rows)
        self._deliveries.plan(connection, approval_deliveries(self._webhooks, rows), ANNOUNCE_AFTER_S)


class AnnouncingBudgets(Budgets):
    """The tables of budgets, and, in the transaction in which four fifths of a window are granted, its deliveries to
    webhooks: so of several processes that pass them at once one tells."""

    def __init__(self, database: Database, deliveries: Deliveries, webhooks: Sequence[Webhook]) -> None:
        super().__init__(database)
        self._deliveries = deliveries
        self._webhooks = tuple(webhooks)

    def announce(self, connection: Transaction, notice: BudgetNotice) -> None:
        self._deliveries.plan(connection, budget_deliveries(self._webhooks, notice))
