"""Brakes: holds, readiness flags, cancels. Whether a call may be tried again. Whether a spend is an estimate.
The hash of a decision's prompt."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    instant = sa.DateTime(timezone=True)
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")
    op.create_table(
        "brakes",
        sa.Column("row", sa.BigInteger() if postgres else sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("session_id", id_text, nullable=False),
        sa.Column("brake_id", id_text, nullable=False),
        sa.Column("turn_id", id_text),
        sa.Column("kind", id_text, nullable=False),
        sa.Column("on_timeout", id_text, nullable=False),
        sa.Column("timeout_s", sa.Float(), nullable=False),
        sa.Column("placed_at", instant, nullable=False, server_default=now),
        sa.Column("ends_at", instant),
        sa.Column("over_at", instant),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_brakes"),
        sa.UniqueConstraint("session_id", "brake_id", name="uq_brakes_session_id_brake_id"),
    )
    op.create_index("ix_brakes_turn_id", "brakes", ["turn_id"])
    op.create_index(
        "ix_brakes_standing",
        "brakes",
        ["session_id", "row"],
        sqlite_where=sa.text("over_at IS NULL"),
        postgresql_where=sa.text("over_at IS NULL"),
    )
    op.add_column("traces", sa.Column("retryable", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("spends", sa.Column("estimated", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column(
        "decisions", sa.Column("prompt_hash", id_text, nullable=False, server_default=sa.text("''"))
    )


def downgrade() -> None:
    op.drop_column("decisions", "prompt_hash")
    op.drop_column("spends", "estimated")
    op.drop_column("traces", "retryable")
    op.drop_table("brakes")
