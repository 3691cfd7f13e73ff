"""The bytes of attachments, once however often they came; and which turns have them.

Who may read a blob follows from `attachments` alone: a turn has it, or a session by one of its turns.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, LargeBinary, PrimaryKeyConstraint, Table

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText, SafeText, UtcTimestamp, utc_now

blobs = Table(
    "blobs",
    metadata,
    Column("sha256", IdText, nullable=False),
    Column("data", LargeBinary, nullable=False),
    PrimaryKeyConstraint("sha256"),
)

attachments = Table(
    "attachments",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("sha256", IdText, nullable=False),
    Column("session_id", IdText, nullable=False),
    Column("media_type", IdText, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("created_at", UtcTimestamp, nullable=False, server_default=utc_now()),
    Column("name", SafeText, nullable=False),
    PrimaryKeyConstraint("turn_id", "sha256"),
)

Index(None, attachments.c.session_id, attachments.c.sha256)
Index(None, attachments.c.sha256)
