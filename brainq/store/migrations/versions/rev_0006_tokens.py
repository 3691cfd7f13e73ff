"""Bearer tokens."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    postgres = op.get_bind().dialect.name == "postgresql"
    id_text = sa.Text(collation="C") if postgres else sa.Text()
    instant = sa.DateTime(timezone=True)
    now = sa.text("clock_timestamp()" if postgres else "(strftime('%Y-%m-%d %H:%M:%f', 'now'))")
    number = sa.BigInteger() if postgres else sa.Integer()
    op.create_table(
        "tokens",
        sa.Column("row", number, primary_key=True, autoincrement=True),
        sa.Column("token_id", id_text, nullable=False),
        sa.Column("secret_hash", id_text, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("sessions_json", sa.Text(), nullable=False),
        sa.Column("verbs_json", sa.Text(), nullable=False),
        sa.Column("created_at", instant, nullable=False, server_default=now),
        sa.Column("expires_at", instant),
        sa.Column("last_used_at", instant),
        sa.Column("revoked_at", instant),
        sa.PrimaryKeyConstraint("row", name="pk_tokens"),
        sa.UniqueConstraint("token_id", name="uq_tokens_token_id"),
    )


def downgrade() -> None:
    op.drop_table("tokens")
