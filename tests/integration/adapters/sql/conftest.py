"""Every test here runs on SQLite and on Postgres."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Literal

import pytest

from brainq.adapters.sql.migrations.upgrade import VERSION_TABLE
from brainq.adapters.sql.store import Store
from tests.support.postgres import EmptiedDatabase, postgres_url

Backend = Literal["sqlite", "postgres"]


@pytest.fixture(params=["sqlite", "postgres"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return request.param


@pytest.fixture
def sql_url(backend: Backend, tmp_path: Path) -> Generator[str]:
    """The url of an empty database."""
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path / 'new' / 'brainq.db'}"
    else:
        with postgres_url() as url:
            yield url


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A migrated SQLite database, to be copied."""
    path = tmp_path_factory.mktemp("migrated") / "brainq.db"
    Store.open(f"sqlite:///{path}").close()
    return path


@pytest.fixture(scope="session")
def emptied_database() -> Generator[EmptiedDatabase]:
    """A migrated Postgres database."""
    with postgres_url() as url:
        Store.open(url).close()
        with closing(EmptiedDatabase(url, kept=VERSION_TABLE)) as database:
            yield database


@pytest.fixture
def store_url(backend: Backend, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The url of a migrated database without a row in it."""
    if backend == "sqlite":
        copy = shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "brainq.db")
        return f"sqlite:///{copy}"
    database: EmptiedDatabase = request.getfixturevalue("emptied_database")
    database.empty()
    return database.url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url, migrate=False) as opened:
        yield opened
