"""Statements that are compiled once and then sent to the driver as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import Dialect, Executable
from sqlalchemy.types import TypeEngine

Record = Mapping[str, Any]  # column name -> value
Convert = Callable[[Any], Any]


class Prepared:
    """A statement compiled for one dialect.

    names   the parameters given at each run; other parameters are constants of the statement

    A turn runs about twenty short statements, and SQLAlchemy's execution of one costs three times what SQLite needs for
    it. So the text and the conversions of values are taken from SQLAlchemy once.

    Raises KeyError if the statement has a parameter that is not in `names`.
    """

    def __init__(self, statement: Executable, dialect: Dialect, names: Sequence[str], *, many: bool) -> None:
        # The compiler's types are not used, because they contain less than its documentation.
        self._compiled: Any = statement.compile(  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
            dialect=dialect, column_keys=sorted(names), for_executemany=many
        )
        self._dialect = dialect
        self._columns: list[tuple[str, TypeEngine[Any]]] = [
            (column.key, column.type) for column in getattr(statement, "exported_columns", ())
        ]
        self._read: list[tuple[str, Convert | None]] | None = None
        self._text: str = self._compiled.string
        self._positional = bool(dialect.positional)
        binds: dict[str, Any] = {name: bind for bind, name in self._compiled.bind_names.items()}
        self._converts: Mapping[str, Convert] = self._compiled._bind_processors
        self._expands = any(bind.expanding for bind in binds.values())
        if missing := {name for name, bind in binds.items() if bind.required} - set(names):
            raise KeyError(f"a statement was run without the values {sorted(missing)}")
        if self._expands:
            return  # The text depends on the values, so it is built at each run.
        order: Sequence[str] = self._compiled.positiontup if self._positional else list(binds)
        self._order = [
            (
                name,
                self._converts.get(name),
                None if name in names else self._converted(name, self._compiled.params[name]),
                name in names,
            )
            for name in order
        ]

    def for_driver(self, given: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the text and the values in the form that the driver expects."""
        if self._expands:
            state = self._compiled.construct_expanded_state(given)
            converts = {**self._converts, **state.processors}
            values = {
                name: converts[name](value) if name in converts else value for name, value in state.parameters.items()
            }
            order = state.positiontup
            return state.statement, tuple(values[name] for name in order) if self._positional else values
        if self._positional:
            return self._text, tuple(
                (given[name] if convert is None else convert(given[name])) if is_given else constant
                for name, convert, constant, is_given in self._order
            )
        return self._text, {
            name: (given[name] if convert is None else convert(given[name])) if is_given else constant
            for name, convert, constant, is_given in self._order
        }

    def records(self, cursor: Any) -> list[Record]:
        """Return the driver's rows with the columns' Python types."""
        found = cursor.fetchall()
        if not found:
            return []
        if self._read is None:
            self._read = [
                (name, kind.dialect_impl(self._dialect).result_processor(self._dialect, described[1]))
                for (name, kind), described in zip(self._columns, cursor.description, strict=True)
            ]
        read = self._read
        return [
            {
                name: value if convert is None else convert(value)
                for (name, convert), value in zip(read, row, strict=True)
            }
            for row in found
        ]

    def _converted(self, name: str, value: Any) -> Any:
        convert = self._converts.get(name)
        return value if convert is None else convert(value)
