"""Which brain a turn names, where a deployment has several."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    dialect = op.get_bind().dialect.name
    kind = sa.Text(collation="C") if dialect == "postgresql" else sa.Text()
    op.add_column("turns", sa.Column("brain", kind))
    condition: dict[str, Any] = {f"{dialect}_where": sa.text("brain IS NOT NULL")}
    op.create_index("ix_turns_brain", "turns", ["brain", "row"], **condition)


def downgrade() -> None:
    op.drop_index("ix_turns_brain", "turns")
    op.drop_column("turns", "brain")
