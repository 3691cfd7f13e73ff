"""Images and files: their bytes, once, and which turns have them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")

    op.create_table(
        "blobs",
        sa.Column("sha256", id_text, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("sha256", name="pk_blobs"),
    )
    op.create_table(
        "attachments",
        *(
            sa.Column(name, id_text, nullable=False)
            for name in ("turn_id", "sha256", "session_id", "media_type")
        ),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=now),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("turn_id", "sha256", name="pk_attachments"),
    )
    op.create_index("ix_attachments_session_id_sha256", "attachments", ["session_id", "sha256"])
    op.create_index("ix_attachments_sha256", "attachments", ["sha256"])


def downgrade() -> None:
    op.drop_table("attachments")
    op.drop_table("blobs")
