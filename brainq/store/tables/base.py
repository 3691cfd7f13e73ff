"""What all tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Index, MetaData

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def partial_index(name: str, *columns: Column[Any], where: str) -> None:
    """An index of the rows `where` holds for, which the migration makes.

    The condition is noted only: SQLAlchemy's own words for it name each dialect, and import it.
    """
    Index(name, *columns, info={"where": where})
