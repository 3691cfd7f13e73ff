"""The first tables: turns, messages, calls, decisions, finalizer steps."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
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

    op.create_table(
        "turns",
        row(),
        sa.Column("turn_id", id_text, nullable=False),
        sa.Column("request_key", id_text, nullable=False),
        sa.Column("session_id", id_text, nullable=False),
        sa.Column("state", id_text, nullable=False),
        sa.Column("content_hash", id_text, nullable=False),
        sa.Column("turn_number", sa.Integer()),
        sa.Column("ending", id_text),
        sa.Column("stop_reason", id_text),
        sa.Column("accepted_at", instant, nullable=False, server_default=now),
        sa.Column("ended_at", instant),
        sa.Column("reject_reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("request_json", sa.Text(), nullable=False),
        sa.Column("result_json", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_turns"),
        sa.UniqueConstraint("turn_id", name="uq_turns_turn_id"),
        sa.UniqueConstraint("request_key", name="uq_turns_request_key"),
    )
    op.create_index("ix_turns_session_id_row", "turns", ["session_id", "row"])
    op.create_index(
        "ix_turns_unended",
        "turns",
        ["row"],
        sqlite_where=sa.text("ended_at IS NULL"),
        postgresql_where=sa.text("ended_at IS NULL"),
    )
    op.create_table(
        "messages",
        row(),
        sa.Column("session_id", id_text, nullable=False),
        sa.Column("turn_id", id_text, nullable=False),
        sa.Column("role", id_text, nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("redacted", sa.Boolean(), nullable=False),
        sa.Column("created_at", instant, nullable=False, server_default=now),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_messages"),
        sa.UniqueConstraint("turn_id", "role", "seq", name="uq_messages_turn_id_role_seq"),
    )
    op.create_index("ix_messages_session_id_row", "messages", ["session_id", "row"])
    op.create_table(
        "calls",
        row(),
        sa.Column("turn_id", id_text, nullable=False),
        sa.Column("call_id", id_text, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("session_id", id_text, nullable=False),
        sa.Column("tool", id_text, nullable=False),
        sa.Column("effect", id_text, nullable=False),
        sa.Column("state", id_text, nullable=False),
        sa.Column("args_hash", id_text, nullable=False),
        sa.Column("idempotency_key", id_text, nullable=False),
        sa.Column("owner", id_text, nullable=False),
        sa.Column("outcome_kind", id_text),
        sa.Column("late", sa.Boolean(), nullable=False, server_default=sa.false()),
        sa.Column("started_at", instant, nullable=False, server_default=now),
        sa.Column("ended_at", instant),
        sa.Column("args_json", sa.Text()),
        sa.Column("outcome_json", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_calls"),
        sa.UniqueConstraint("turn_id", "call_id", "attempt", name="uq_calls_turn_id_call_id_attempt"),
    )
    op.create_table(
        "decisions",
        row(),
        sa.Column("turn_id", id_text, nullable=False),
        sa.Column("session_id", id_text, nullable=False),
        sa.Column("key", id_text, nullable=False),
        sa.Column("strategy", id_text, nullable=False),
        sa.Column("tools", sa.JSON(), nullable=False),
        sa.Column("context_hash", id_text, nullable=False),
        sa.Column("elapsed_ms", sa.BigInteger(), nullable=False),
        sa.Column("turn_number", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), nullable=False),
        sa.Column("cache_creation_tokens", sa.BigInteger(), nullable=False),
        sa.Column("ending", id_text, nullable=False),
        sa.Column("stop_reason", id_text, nullable=False),
        sa.Column("prompt_id", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("prompt_tags", sa.JSON(), nullable=False),
        sa.Column("created_at", instant, nullable=False, server_default=now),
        sa.PrimaryKeyConstraint("row", name="pk_decisions"),
        sa.UniqueConstraint("turn_id", name="uq_decisions_turn_id"),
    )
    op.create_table(
        "finalizer_steps",
        sa.Column("turn_id", id_text, nullable=False),
        sa.Column("step", id_text, nullable=False),
        sa.Column("state", id_text, nullable=False),
        sa.Column("tries", sa.Integer(), nullable=False),
        sa.Column("step_key", id_text, nullable=False),
        sa.Column("updated_at", instant, nullable=False, server_default=now),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("turn_id", "step", name="pk_finalizer_steps"),
    )


def downgrade() -> None:
    for table in ("finalizer_steps", "decisions", "calls", "messages", "turns"):
        op.drop_table(table)
