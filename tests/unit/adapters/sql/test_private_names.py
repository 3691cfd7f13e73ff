"""What our fast path uses of SQLAlchemy beyond its documentation. A release that renames one fails here, by name."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, create_engine, select
from sqlalchemy.exc import DBAPIError

PROJECT = Path(__file__).parents[4] / "pyproject.toml"
ENGINE = create_engine("sqlite://")
TABLE = Table("things", MetaData(), Column("id", Integer))
COMPILED: Any = select(TABLE).where(TABLE.c.id == 1).compile(dialect=ENGINE.dialect)

PRIVATE: list[tuple[Any, str]] = [
    (COMPILED, "_bind_processors"),
    (COMPILED, "bind_names"),
    (COMPILED, "positiontup"),
    (COMPILED, "construct_expanded_state"),
    (ENGINE.pool, "_invalidate"),
    (ENGINE.dialect, "is_disconnect"),
    (DBAPIError, "instance"),
]


@pytest.mark.parametrize(("owner", "name"), PRIVATE, ids=[name for _, name in PRIVATE])
def test_sqlalchemy_still_has_it(owner: Any, name: str) -> None:
    assert hasattr(owner, name), f"brainq/adapters/sql uses {name!r} of SQLAlchemy, which this version lacks"


def test_no_release_is_allowed_that_was_not_tried() -> None:
    dependencies: list[str] = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    (sqlalchemy,) = [line for line in dependencies if line.startswith("sqlalchemy")]
    assert "<" in sqlalchemy
