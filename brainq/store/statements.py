"""Inserts that may meet an existing row, built once per dialect so that SQLAlchemy's cache finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Table
from sqlalchemy.dialects import postgresql, sqlite

from brainq.store.database import Dialects

_KEEP_COUNT = {"preserve_rowcount": True}  # psycopg forgets it when SQLAlchemy closes the cursor of an INSERT


def insert_or_ignore(
    table: Table, *, returning: str | None = None, fixed: Mapping[str, ColumnElement[Any]] | None = None
) -> Dialects:
    """INSERT ... ON CONFLICT DO NOTHING [RETURNING column]; 0 rows where any unique key was taken.

    `fixed` columns get an expression, the others the values given at each run.
    """
    lite = sqlite.insert(table).on_conflict_do_nothing()
    post = postgresql.insert(table).on_conflict_do_nothing()
    if fixed is not None:
        lite, post = lite.values(dict(fixed)), post.values(dict(fixed))
    if returning is not None:
        column = table.c[returning]
        return {"sqlite": lite.returning(column), "postgresql": post.returning(column)}
    # inline: nobody asks for the new row's key, so Postgres need not return it
    return {
        "sqlite": lite.inline().execution_options(**_KEEP_COUNT),
        "postgresql": post.inline().execution_options(**_KEEP_COUNT),
    }


def upsert(
    table: Table,
    keys: Sequence[str],
    *,
    copied: Sequence[str],
    changed: Mapping[str, ColumnElement[Any]],
    where: ColumnElement[bool],
) -> Dialects:
    """INSERT, or, where `keys` are taken and `where` holds, UPDATE.

    `copied` columns take the values meant for the new row, `changed` ones an expression.
    """
    lite = sqlite.insert(table).inline().execution_options(**_KEEP_COUNT)
    post = postgresql.insert(table).inline().execution_options(**_KEEP_COUNT)
    return {
        "sqlite": lite.on_conflict_do_update(
            index_elements=keys,
            set_={name: lite.excluded[name] for name in copied} | dict(changed),
            where=where,
        ),
        "postgresql": post.on_conflict_do_update(
            index_elements=keys,
            set_={name: post.excluded[name] for name in copied} | dict(changed),
            where=where,
        ),
    }
