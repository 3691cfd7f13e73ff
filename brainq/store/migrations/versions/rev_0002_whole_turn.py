"""What a whole turn leaves: spends, traces, transcripts, memories, observations, judgements; and pruning."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    instant = sa.DateTime(timezone=True)
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")

    def ids(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, id_text, nullable=False) for name in names]

    def numbers(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, sa.Integer(), nullable=False) for name in names]

    def big_numbers(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
        return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]

    def instants(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, instant, nullable=False, server_default=now) for name in names]

    op.create_table(
        "spends",
        *ids("turn_id"),
        *numbers("seq", "step"),
        *ids("kind", "model"),
        *big_numbers("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
        sa.Column("cost_usd", sa.Float()),
        sa.PrimaryKeyConstraint("turn_id", "seq", name="pk_spends"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "traces",
        *ids("turn_id", "call_id", "session_id"),
        *numbers("step", "wave"),
        *ids("tool", "effect", "status"),
        *numbers("attempt", "repairs"),
        *big_numbers("latency_ms", "dispatched_at_ms", "started_at_ms", "ended_at_ms"),
        *ids("args_hash"),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", "call_id", name="pk_traces"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "transcripts",
        *ids("turn_id"),
        *numbers("step"),
        *ids("role", "call_id", "digest", "session_id"),
        *numbers("place"),
        sa.Column("redacted", sa.Boolean(), nullable=False),
        sa.Column("message_json", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", "step", "role", "call_id", "digest", name="pk_transcripts"),
    )
    for name, more in (("memories", ()), ("observations", ("source_event_id",))):
        op.create_table(
            name,
            sa.Column(
                "row", sa.BigInteger() if postgres else sa.Integer(), primary_key=True, autoincrement=True
            ),
            *ids("scope", "kind", "norm_hash"),
            sa.Column("times_seen", sa.Integer(), nullable=False, server_default="1"),
            *ids("session_id", "turn_id", "last_turn_id", *more),
            *instants("created_at", "updated_at"),
            *ids("scope_term"),
            sa.Column("text", sa.Text(), nullable=False),
            sa.Column("terms", sa.Text(), nullable=False),
            sa.PrimaryKeyConstraint("row", name=f"pk_{name}"),
            sa.UniqueConstraint("scope", "kind", "norm_hash", name=f"uq_{name}_scope_kind_norm_hash"),
        )
        op.create_index(f"ix_{name}_turn_id", name, ["turn_id"])
        for statement in _searchable_on_postgres(name) if postgres else _searchable_on_sqlite(name):
            op.execute(statement)
    op.create_table(
        "judgements",
        *ids("turn_id", "judge", "session_id", "state"),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        *instants("due_at"),
        sa.Column("score", sa.Float()),
        sa.Column("method", id_text),
        sa.Column("model", id_text),
        *big_numbers("input_tokens", "output_tokens", nullable=True),
        sa.Column("cost_usd", sa.Float()),
        *instants("created_at", "updated_at"),
        sa.Column("reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("turn_id", "judge", name="pk_judgements"),
    )
    op.create_index(
        "ix_judgements_pending",
        "judgements",
        ["due_at"],
        sqlite_where=sa.text("state = 'pending'"),
        postgresql_where=sa.text("state = 'pending'"),
    )
    op.create_table(
        "pruned_sessions",
        *ids("session_id"),
        *big_numbers("turn_row"),
        *numbers("turn_number"),
        sa.PrimaryKeyConstraint("session_id", name="pk_pruned_sessions"),
        sqlite_with_rowid=False,
    )


def _searchable_on_sqlite(name: str) -> list[str]:
    """An FTS5 table without text of its own: it indexes the rows' columns, and triggers tell it of changes."""
    fts, columns = f"{name}_fts", "scope_term, terms"
    put_in = f"INSERT INTO {fts} (rowid, {columns}) VALUES (new.row, new.scope_term, new.terms);"
    take_out = (
        f"INSERT INTO {fts} ({fts}, rowid, {columns}) VALUES ('delete', old.row, old.scope_term, old.terms);"
    )
    return [
        (
            f"CREATE VIRTUAL TABLE {fts} USING fts5({columns}, content='{name}', content_rowid='row', "
            "tokenize='porter ascii')"
        ),
        f"CREATE TRIGGER {name}_inserted AFTER INSERT ON {name} BEGIN {put_in} END",
        f"CREATE TRIGGER {name}_deleted AFTER DELETE ON {name} BEGIN {take_out} END",
        f"CREATE TRIGGER {name}_updated AFTER UPDATE OF {columns} ON {name} BEGIN {take_out} {put_in} END",
    ]


def _searchable_on_postgres(name: str) -> list[str]:
    return [
        (
            f"ALTER TABLE {name} ADD COLUMN search tsvector NOT NULL "
            "GENERATED ALWAYS AS (to_tsvector('english', terms)) STORED"
        ),
        f"CREATE INDEX ix_{name}_search ON {name} USING gin (search)",
    ]


def downgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    if not postgres:
        for name in ("memories", "observations"):
            op.execute(f"DROP TABLE {name}_fts")
    for table in (
        "pruned_sessions",
        "judgements",
        "observations",
        "memories",
        "transcripts",
        "traces",
        "spends",
    ):
        op.drop_table(table)
