"""Every test here runs on SQLite and on Postgres."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Literal

import pytest

from brainq.store.store import Store
from tests.support.postgres import postgres_url

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
def migrated_database() -> Generator[str]:
    """The name of a migrated Postgres database, to be copied."""
    with postgres_url() as url:
        Store.open(url).close()
        yield url.split("/")[3].split("?")[0]


@pytest.fixture
def store_url(backend: Backend, tmp_path: Path, request: pytest.FixtureRequest) -> Generator[str]:
    """The url of a migrated database without a row in it."""
    if backend == "sqlite":
        copy = shutil.copy(request.getfixturevalue("migrated_file"), tmp_path / "brainq.db")
        yield f"sqlite:///{copy}"
    else:
        with postgres_url(template=request.getfixturevalue("migrated_database")) as url:
            yield url


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    with Store.open(store_url, migrate=False) as opened:
        yield opened
