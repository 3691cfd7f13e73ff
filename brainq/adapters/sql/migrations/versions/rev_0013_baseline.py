"""Create all tables of the first release, and the full-text search over memories and observations.

Databases of earlier builds, with the revisions 0001 to 0012, are not upgraded. The error of `upgrade` names the remedy.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0013"
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

    def ids(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, id_text, nullable=False) for name in names]

    def texts(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, sa.Text(), nullable=False) for name in names]

    def numbers(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, sa.Integer(), nullable=False) for name in names]

    def big_numbers(*names: str, nullable: bool = False) -> list[sa.Column[Any]]:
        return [sa.Column(name, sa.BigInteger(), nullable=nullable) for name in names]

    def instants(*names: str) -> list[sa.Column[Any]]:
        return [sa.Column(name, instant, nullable=False, server_default=now) for name in names]

    def index_where(name: str, table: str, columns: list[str], where: str) -> None:
        # A dialect that is named is imported.
        condition: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text(where)}
        op.create_index(name, table, columns, **condition)

    op.create_table(
        "turns",
        row(),
        *ids("turn_id", "request_key", "session_id", "state", "content_hash"),
        sa.Column("turn_number", sa.Integer()),
        sa.Column("ending", id_text),
        sa.Column("stop_reason", id_text),
        *instants("accepted_at"),
        sa.Column("ended_at", instant),
        sa.Column("reject_reason", sa.Text()),
        sa.Column("error", sa.Text()),
        sa.Column("request_json", sa.Text(), nullable=False),
        sa.Column("result_json", sa.Text()),
        sa.Column("kind", id_text),
        sa.Column("message", sa.Text()),
        *(sa.Column(name, sa.Integer()) for name in ("steps", "calls", "failed_calls")),
        sa.Column("tokens", sa.BigInteger()),
        sa.Column("cost_usd", sa.Float()),
        sa.Column("brain", id_text),
        sa.PrimaryKeyConstraint("row", name="pk_turns"),
        sa.UniqueConstraint("turn_id", name="uq_turns_turn_id"),
        sa.UniqueConstraint("request_key", name="uq_turns_request_key"),
    )
    op.create_index("ix_turns_session_id_row", "turns", ["session_id", "row"])
    op.create_index("ix_turns_listed", "turns", ["state", "row", "session_id", "turn_id"])
    op.create_index("ix_turns_accepted_at_row", "turns", ["accepted_at", "row"])
    op.create_index("ix_turns_dear", "turns", ["cost_usd", "row", "session_id"])
    index_where("ix_turns_unended", "turns", ["row"], "ended_at IS NULL")
    index_where("ix_turns_stopped", "turns", ["stop_reason", "row"], "stop_reason <> 'answered'")
    index_where("ix_turns_failing", "turns", ["row"], "failed_calls > 0")
    index_where("ix_turns_brain", "turns", ["brain", "row"], "brain IS NOT NULL")
    op.create_table(
        "messages",
        row(),
        *ids("session_id", "turn_id", "role"),
        *numbers("seq"),
        sa.Column("redacted", sa.Boolean(), nullable=False),
        *instants("created_at"),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_messages"),
        sa.UniqueConstraint("turn_id", "role", "seq", name="uq_messages_turn_id_role_seq"),
    )
    op.create_index("ix_messages_session_id_row", "messages", ["session_id", "row"])
    op.create_table(
        "calls",
        row(),
        *ids("turn_id", "call_id"),
        *numbers("attempt"),
        *ids("session_id", "tool", "effect", "state", "args_hash", "idempotency_key", "owner"),
        sa.Column("outcome_kind", id_text),
        sa.Column("late", sa.Boolean(), nullable=False, server_default=sa.false()),
        *instants("started_at"),
        sa.Column("ended_at", instant),
        sa.Column("args_json", sa.Text()),
        sa.Column("outcome_json", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_calls"),
        sa.UniqueConstraint("turn_id", "call_id", "attempt", name="uq_calls_turn_id_call_id_attempt"),
    )
    op.create_table(
        "decisions",
        row(),
        *ids("turn_id", "session_id", "key", "strategy"),
        sa.Column("tools", sa.JSON(), nullable=False),
        *ids("context_hash"),
        sa.Column("prompt_hash", id_text, nullable=False, server_default=sa.text("''")),
        *big_numbers("elapsed_ms"),
        *numbers("turn_number"),
        *big_numbers("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
        *ids("ending", "stop_reason"),
        sa.Column("prompt_id", sa.Text()),
        sa.Column("prompt_version", sa.Text()),
        sa.Column("prompt_tags", sa.JSON(), nullable=False),
        *instants("created_at"),
        sa.PrimaryKeyConstraint("row", name="pk_decisions"),
        sa.UniqueConstraint("turn_id", name="uq_decisions_turn_id"),
    )
    op.create_table(
        "finalizer_steps",
        *ids("turn_id", "step", "state"),
        *numbers("tries"),
        *ids("step_key"),
        *instants("updated_at"),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("turn_id", "step", name="pk_finalizer_steps"),
    )
    index_where("ix_finalizer_steps_dead", "finalizer_steps", ["turn_id"], "state = 'dead'")
    op.create_table(
        "spends",
        *ids("turn_id"),
        *numbers("seq", "step"),
        *ids("kind", "model"),
        *big_numbers("input_tokens", "output_tokens", "cache_read_tokens", "cache_creation_tokens"),
        sa.Column("cost_usd", sa.Float()),
        sa.Column("estimated", sa.Boolean(), nullable=False, server_default=sa.false()),
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
        sa.Column("retryable", sa.Boolean(), nullable=False, server_default=sa.false()),
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
            row(),
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
    index_where("ix_judgements_pending", "judgements", ["due_at"], "state = 'pending'")
    index_where("ix_judgements_dead", "judgements", ["turn_id"], "state = 'dead'")
    op.create_table(
        "pruned_sessions",
        *ids("session_id"),
        *big_numbers("turn_row"),
        *numbers("turn_number"),
        sa.PrimaryKeyConstraint("session_id", name="pk_pruned_sessions"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "inputs",
        row(),
        *ids("session_id", "client_message_id", "turn_id"),
        sa.Column("readiness", sa.Boolean()),
        sa.Column("merged", sa.Boolean(), nullable=False),
        *ids("content_hash", "state"),
        sa.Column("step", sa.Integer()),
        sa.Column("bounced_turn_id", id_text),
        *instants("accepted_at"),
        sa.Column("settled_at", instant),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("attachments_json", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_inputs"),
        sa.UniqueConstraint("session_id", "client_message_id", name="uq_inputs_session_id_client_message_id"),
    )
    op.create_index("ix_inputs_turn_id", "inputs", ["turn_id"])
    index_where("ix_inputs_accepted", "inputs", ["row"], "state = 'accepted'")
    op.create_table(
        "approvals",
        row(),
        *ids("turn_id", "call_id", "session_id", "tool", "effect", "args_hash", "state"),
        sa.Column("edited", sa.Boolean(), nullable=False, server_default=sa.false()),
        *instants("created_at"),
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
    index_where("ix_approvals_pending", "approvals", ["row"], "state = 'pending'")
    op.create_table(
        "brakes",
        row(),
        *ids("session_id", "brake_id"),
        sa.Column("turn_id", id_text),
        *ids("kind", "on_timeout"),
        sa.Column("timeout_s", sa.Float(), nullable=False),
        *instants("placed_at"),
        sa.Column("ends_at", instant),
        sa.Column("over_at", instant),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("row", name="pk_brakes"),
        sa.UniqueConstraint("session_id", "brake_id", name="uq_brakes_session_id_brake_id"),
    )
    op.create_index("ix_brakes_turn_id", "brakes", ["turn_id"])
    index_where("ix_brakes_standing", "brakes", ["session_id", "row"], "over_at IS NULL")
    op.create_table(
        "tokens",
        row(),
        *ids("token_id", "secret_hash"),
        *texts("name", "sessions_json", "verbs_json"),
        *instants("created_at"),
        *(sa.Column(name, instant) for name in ("expires_at", "last_used_at", "revoked_at")),
        sa.PrimaryKeyConstraint("row", name="pk_tokens"),
        sa.UniqueConstraint("token_id", name="uq_tokens_token_id"),
    )
    op.create_table(
        "deliveries",
        row(),
        *ids("message_id", "url", "event", "session_id", "turn_id", "state"),
        sa.Column("tries", sa.Integer(), nullable=False, server_default="0"),
        *instants("due_at", "created_at", "updated_at"),
        *texts("data_json"),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("row", name="pk_deliveries"),
        sa.UniqueConstraint("message_id", "url", name="uq_deliveries_message_id_url"),
    )
    op.create_index("ix_deliveries_turn_id", "deliveries", ["turn_id"])
    index_where("ix_deliveries_pending", "deliveries", ["url", "due_at"], "state = 'pending'")
    index_where("ix_deliveries_dead", "deliveries", ["row"], "state = 'dead'")
    op.create_table(
        "blobs",
        *ids("sha256"),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_blobs"),
    )
    op.create_table(
        "attachments",
        *ids("turn_id", "sha256", "session_id", "media_type"),
        *big_numbers("size"),
        *instants("created_at"),
        *texts("name"),
        sa.PrimaryKeyConstraint("turn_id", "sha256", name="pk_attachments"),
    )
    op.create_index("ix_attachments_session_id_sha256", "attachments", ["session_id", "sha256"])
    op.create_index("ix_attachments_sha256", "attachments", ["sha256"])
    op.create_table(
        "schedules",
        row(),
        *ids("schedule_id", "name"),
        *texts("timing", "zone"),
        *ids("session_id"),
        *texts("request_json", "on_running", "missed"),
        *numbers("paused"),
        *big_numbers("start_ms"),
        *big_numbers("next_ms", "last_due_ms", nullable=True),
        *ids("last_turn_id"),
        *texts("note"),
        *instants("created_at"),
        sa.PrimaryKeyConstraint("row", name="pk_schedules"),
        sa.UniqueConstraint("schedule_id", name="uq_schedules_schedule_id"),
        sa.UniqueConstraint("name", name="uq_schedules_name"),
    )
    op.create_index("ix_schedules_next_ms", "schedules", ["next_ms"])


def _searchable_on_sqlite(name: str) -> list[str]:
    """Create an FTS5 table without text of its own. It indexes columns of the rows, and triggers update it."""
    fts, columns = f"{name}_fts", "scope_term, terms"
    put_in = f"INSERT INTO {fts} (rowid, {columns}) VALUES (new.row, new.scope_term, new.terms);"
    take_out = f"INSERT INTO {fts} ({fts}, rowid, {columns}) VALUES ('delete', old.row, old.scope_term, old.terms);"
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
    if op.get_bind().dialect.name == "sqlite":
        for name in ("memories", "observations"):
            op.execute(f"DROP TABLE {name}_fts")
    for table in (
        *("schedules", "attachments", "blobs", "deliveries", "tokens"),
        *("brakes", "approvals", "inputs", "pruned_sessions", "judgements"),
        *("observations", "memories", "transcripts", "traces", "spends"),
        *("finalizer_steps", "decisions", "calls", "messages", "turns"),
    ):
        op.drop_table(table)
