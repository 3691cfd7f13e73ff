"""What people send into turns, and what they decide: inputs, approvals."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    instant = sa.DateTime(timezone=True)
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")

    def row() -> sa.Column[Any]:
        kind = sa.BigInteger() if postgres else sa.Integer()
        return sa.Column("row", kind, primary_key=True, autoincrement=True)

    def ids(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, id_text, nullable=False) for name in names]

    op.create_table(
        "inputs",
        row(),
        *ids("session_id", "client_message_id", "turn_id"),
        sa.Column("readiness", sa.Boolean()),
        sa.Column("merged", sa.Boolean(), nullable=False),
        *ids("content_hash", "state"),
        sa.Column("step", sa.Integer()),
        sa.Column("bounced_turn_id", id_text),
        sa.Column("accepted_at", instant, nullable=False, server_default=now),
        sa.Column("settled_at", instant),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_inputs"),
        sa.UniqueConstraint("session_id", "client_message_id", name="uq_inputs_session_id_client_message_id"),
    )
    op.create_index("ix_inputs_turn_id", "inputs", ["turn_id"])
    op.create_index(
        "ix_inputs_accepted",
        "inputs",
        ["row"],
        sqlite_where=sa.text("state = 'accepted'"),
        postgresql_where=sa.text("state = 'accepted'"),
    )
    op.create_table(
        "approvals",
        row(),
        *ids("turn_id", "call_id", "session_id", "tool", "effect", "args_hash", "state"),
        sa.Column("edited", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("created_at", instant, nullable=False, server_default=now),
        sa.Column("expires_at", instant, nullable=False),
        sa.Column("decided_at", instant),
        sa.Column("decided_by", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("args_json", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_approvals"),
        sa.UniqueConstraint("turn_id", "call_id", name="uq_approvals_turn_id_call_id"),
    )
    op.create_index("ix_approvals_session_id_row", "approvals", ["session_id", "row"])
    op.create_index(
        "ix_approvals_pending",
        "approvals",
        ["row"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )


def downgrade() -> None:
    for table in ("approvals", "inputs"):
        op.drop_table(table)
