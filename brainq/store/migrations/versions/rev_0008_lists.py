"""What lists of turns show and are filtered by. Turns that were accepted before have none of it."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_INDEXED = {
    "ix_turns_listed": ["state", "row", "session_id", "turn_id"],
    "ix_turns_accepted_at_row": ["accepted_at", "row"],
    "ix_turns_dear": ["cost_usd", "row", "session_id"],
}
_INDEXED_WHERE = {
    "ix_turns_stopped": ("turns", ["stop_reason", "row"], "stop_reason <> 'answered'"),
    "ix_turns_failing": ("turns", ["row"], "failed_calls > 0"),
    "ix_finalizer_steps_dead": ("finalizer_steps", ["turn_id"], "state = 'dead'"),
}
_COLUMNS = ("kind", "message", "steps", "calls", "failed_calls", "tokens", "cost_usd")


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    kinds: dict[str, Any] = {
        "kind": sa.Text(collation="C") if dialect == "postgresql" else sa.Text(),
        "message": sa.Text(),
        "tokens": sa.BigInteger(),
        "cost_usd": sa.Float(),
    }
    for name in _COLUMNS:
        op.add_column("turns", sa.Column(name, kinds.get(name, sa.Integer())))
    for name, columns in _INDEXED.items():
        op.create_index(name, "turns", columns)
    for name, (table, columns, where) in _INDEXED_WHERE.items():
        condition: dict[str, Any] = {
            f"{dialect}_where": sa.text(where)
        }  # a dialect that is named is imported
        op.create_index(name, table, columns, **condition)


def downgrade() -> None:
    for name, (table, _, _) in _INDEXED_WHERE.items():
        op.drop_index(name, table)
    for name in _INDEXED:
        op.drop_index(name, "turns")
    for name in reversed(_COLUMNS):
        op.drop_column("turns", name)
