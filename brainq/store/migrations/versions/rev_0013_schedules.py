"""Scheduled and repeated turns."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")

    op.create_table(
        "schedules",
        sa.Column("row", sa.BigInteger() if postgres else sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("schedule_id", id_text, nullable=False),
        sa.Column("name", id_text, nullable=False),
        sa.Column("timing", sa.Text(), nullable=False),
        sa.Column("zone", sa.Text(), nullable=False),
        sa.Column("session_id", id_text, nullable=False),
        *(sa.Column(name, sa.Text(), nullable=False) for name in ("request_json", "on_running", "missed")),
        sa.Column("paused", sa.Integer(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger()),
        sa.Column("last_due_ms", sa.BigInteger()),
        sa.Column("last_turn_id", id_text, nullable=False),
        sa.Column("note", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.PrimaryKeyConstraint("row", name="pk_schedules"),
        sa.UniqueConstraint("schedule_id", name="uq_schedules_schedule_id"),
        sa.UniqueConstraint("name", name="uq_schedules_name"),
    )
    op.create_index("ix_schedules_next_ms", "schedules", ["next_ms"])


def downgrade() -> None:
    op.drop_table("schedules")
