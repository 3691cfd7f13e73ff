"""The column types and expressions that tables share: safe text, ids sorted by bytes, encrypted content, and the
database's clock.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import BigInteger, Column, DateTime, Dialect, Index, Integer, LargeBinary, MetaData, Text
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import TypeDecorator, TypeEngine

from brainq.adapters.sql.text import sql_text

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    }
)


def partial_index(name: str, *columns: Column[Any], where: str) -> None:
    """Return an index of the rows that match `where`, which a migration creates.

    The condition is only stored as a note, because SQLAlchemy's own arguments would import every dialect.
    """
    Index(name, *columns, info={"where": where})


class SafeText(TypeDecorator[str]):
    """TEXT whose values are cleaned with `sql_text`. It has no length limit, because long text must not fail a
    write."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else sql_text(value)


class IdText(SafeText):
    """An id, compared and sorted by bytes whatever the database's collation."""

    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return Text(collation="C") if dialect.name == "postgresql" else Text()


class ContentText(SafeText):
    """Text that people, models or tools wrote. A database with a codec encrypts it.

    unread   the value that is read if the text's key was removed for good: `text` gives a note, `null` None, `required`
             an error. `line` gives a note and `absent` None, also if the key is only missing here
    """

    cache_ok = True

    def __init__(self, unread: str = "text") -> None:
        super().__init__()
        self.unread = unread


class ContentBytes(TypeDecorator[bytes]):
    """The bytes of a file, encrypted like ContentText."""

    impl = LargeBinary
    cache_ok = True


class UtcTimestamp(TypeDecorator[datetime]):
    """An aware UTC datetime. SQLite stores text with milliseconds, Postgres `timestamptz`."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        return _sqlite_instant() if dialect.name == "sqlite" else super().load_dialect_impl(dialect)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


@cache
def _sqlite_instant() -> TypeEngine[Any]:
    """Return a DATETIME that is bound as it is stored: `12:00:00.000` is before `12:00:00.000000` as text."""
    from sqlalchemy.dialects.sqlite import DATETIME

    class Instant(DATETIME):
        cache_ok = True

        def bind_processor(self, dialect: Dialect) -> Any:
            as_text: Any = super().bind_processor(dialect)

            def bound(value: datetime | None) -> str | None:
                return None if value is None else str(as_text(value)).removesuffix("000")

            return bound

    return Instant()


class utc_now(FunctionElement[datetime]):  # noqa: N801 - reads as the SQL function it is
    """The database's clock, with milliseconds."""

    type = UtcTimestamp()
    inherit_cache = True


@compiles(utc_now, "sqlite")
def _sqlite_now(element: utc_now, compiler: Any, **_: Any) -> str:
    return "strftime('%Y-%m-%d %H:%M:%f', 'now')"


@compiles(utc_now, "postgresql")
def _postgres_now(element: utc_now, compiler: Any, **_: Any) -> str:
    return "clock_timestamp()"


class utc_after(FunctionElement[datetime]):  # noqa: N801
    """`utc_after(seconds)`: the database's time in this many seconds; a negative number is in the past."""

    type = UtcTimestamp()
    inherit_cache = True


@compiles(utc_after, "sqlite")
def _sqlite_after(element: utc_after, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', {seconds}))"


@compiles(utc_after, "postgresql")
def _postgres_after(element: utc_after, compiler: Any, **kw: Any) -> str:
    return f"clock_timestamp() + make_interval(secs => {compiler.process(element.clauses, **kw)})"


class ms_after(FunctionElement[int]):  # noqa: N801
    """`ms_after(seconds)`: like `utc_after`, in milliseconds since 1970."""

    type = BigInteger()
    inherit_cache = True


@compiles(ms_after, "sqlite")
def _sqlite_ms_after(element: ms_after, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"CAST((strftime('%s', 'now') + ({seconds})) * 1000 AS INTEGER)"


@compiles(ms_after, "postgresql")
def _postgres_ms_after(element: ms_after, compiler: Any, **kw: Any) -> str:
    seconds = compiler.process(element.clauses, **kw)
    return f"CAST((extract(epoch FROM clock_timestamp()) + ({seconds})) * 1000 AS BIGINT)"


class greater_of(FunctionElement[int]):  # noqa: N801
    """The greater of two numbers, neither of them NULL."""

    type = BigInteger()
    inherit_cache = True


@compiles(greater_of, "sqlite")
def _sqlite_greater(element: greater_of, compiler: Any, **kw: Any) -> str:
    return f"max({compiler.process(element.clauses, **kw)})"


@compiles(greater_of, "postgresql")
def _postgres_greater(element: greater_of, compiler: Any, **kw: Any) -> str:
    return f"greatest({compiler.process(element.clauses, **kw)})"


def row_column() -> Column[int]:
    """Return the column `row`, a growing 64-bit number, which is the rowid on SQLite."""
    kind = BigInteger().with_variant(Integer(), "sqlite")
    return Column("row", kind, primary_key=True, autoincrement=True)
