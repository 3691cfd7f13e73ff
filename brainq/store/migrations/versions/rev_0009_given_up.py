"""What was given up is counted without reading what was not."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_INDEXED = {
    "ix_judgements_dead": ("judgements", ["turn_id"]),
    "ix_deliveries_dead": ("deliveries", ["row"]),
}


def upgrade() -> None:
    for name, (table, columns) in _INDEXED.items():
        condition: dict[str, Any] = {f"{op.get_bind().dialect.name}_where": sa.text("state = 'dead'")}
        op.create_index(name, table, columns, **condition)


def downgrade() -> None:
    for name, (table, _) in _INDEXED.items():
        op.drop_index(name, table)
