"""Whether an exception says that SQL is away, or cannot work just now: what was asked may be asked again later."""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DataError, IntegrityError, SQLAlchemyError, StatementError


def is_sql_away(failure: BaseException) -> bool:
    """False for what would fail in just the same way again, such as a value that no column takes."""
    if isinstance(failure, DataError | IntegrityError) or type(failure) is StatementError:
        return False
    return isinstance(failure, SQLAlchemyError | sqlite3.OperationalError)
