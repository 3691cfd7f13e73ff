"""Deliveries to webhooks."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    postgres = dialect == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")

    def ids(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, id_text, nullable=False) for name in names]

    def instants(*names: str) -> list[sa.Column[Any]]:
        kind = sa.DateTime(timezone=True)
        return [sa.Column(name, kind, nullable=False, server_default=now) for name in names]

    op.create_table(
        "deliveries",
        sa.Column("row", sa.BigInteger() if postgres else sa.Integer(), primary_key=True, autoincrement=True),
        *ids("message_id", "url", "event", "session_id", "turn_id", "state"),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        *instants("due_at", "created_at", "updated_at"),
        sa.Column("data_json", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_deliveries"),
        sa.UniqueConstraint("message_id", "url", name="uq_deliveries_message_id_url"),
    )
    op.create_index("ix_deliveries_turn_id", "deliveries", ["turn_id"])
    pending: dict[str, Any] = {
        f"{dialect}_where": sa.text("state = 'pending'")
    }  # a dialect that is named is imported
    op.create_index("ix_deliveries_pending", "deliveries", ["url", "due_at"], **pending)


def downgrade() -> None:
    op.drop_table("deliveries")
