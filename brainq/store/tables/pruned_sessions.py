"""How far each session's turns were pruned: the number of the newest turn that is gone.

One small row a session, for good: its next turn goes on counting from here.
"""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Integer, PrimaryKeyConstraint, Table

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText

pruned_sessions = Table(
    "pruned_sessions",
    metadata,
    Column("session_id", IdText, nullable=False),
    Column("turn_row", BigInteger, nullable=False),  # its `turns.row`
    Column("turn_number", Integer, nullable=False),
    PrimaryKeyConstraint("session_id"),
    sqlite_with_rowid=False,
)
