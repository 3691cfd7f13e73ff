"""What each model call of a turn used."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Float, Integer, PrimaryKeyConstraint, Table, false

from brainq.store.tables.base import metadata
from brainq.store.tables.types import IdText

# Dollars are floats: prices come as floats, a 64-bit float keeps a sum of a million calls right to far below
# a millionth of a cent, and SQLite would turn NUMERIC into a float anyway. An invoice is the vendor's to write.
# No `row`, and no rowid on SQLite: written in every turn's one transaction, so it has one index and no more.
spends = Table(
    "spends",
    metadata,
    Column("turn_id", IdText, nullable=False),
    Column("seq", Integer, nullable=False),
    Column("step", Integer, nullable=False),
    Column("kind", IdText, nullable=False),  # step, lost, reflection, compaction
    Column("model", IdText, nullable=False),
    Column("input_tokens", BigInteger, nullable=False),
    Column("output_tokens", BigInteger, nullable=False),
    Column("cache_read_tokens", BigInteger, nullable=False),
    Column("cache_creation_tokens", BigInteger, nullable=False),
    Column("cost_usd", Float),  # None where the model's price is not known
    Column("estimated", Boolean, nullable=False, server_default=false()),  # the service counted no tokens
    PrimaryKeyConstraint("turn_id", "seq"),
    sqlite_with_rowid=False,
)
