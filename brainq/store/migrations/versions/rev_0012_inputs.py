"""Images and files of mid-turn input."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("inputs", sa.Column("attachments_json", sa.Text()))


def downgrade() -> None:
    op.drop_column("inputs", "attachments_json")
