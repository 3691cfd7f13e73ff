"""What a power cut must not take back: on SQLite the log is synced once it holds an acceptance, an intent or a void."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from brainq.adapters.sql.engine import is_sql_unavailable
from brainq.adapters.sql.store import Store
from brainq.contracts.people import TurnInput
from tests.integration.adapters.sql.examples import call, request, start

pytestmark = pytest.mark.parametrize("backend", ["sqlite"])

DURABLE: dict[str, Callable[[Store], object]] = {
    "SELECT count(*) FROM turns": lambda store: store.turns.accept(request()),
    "SELECT count(*) FROM inputs": lambda store: store.inputs.accept(
        "s1", "turn-1", TurnInput(client_message_id="m", text="more")
    ),
    "SELECT count(*) FROM calls WHERE state = 'intent'": start,
    "SELECT count(*) FROM calls": lambda store: store.calls.start(
        **call(), unless_braked=True, args_hash="h", args_json="{}", idempotency_key="k", owner="worker-1"
    ),
    "SELECT count(*) FROM calls WHERE state = 'void'": lambda store: store.calls.void(**call()),
}


class Disk:
    """Keeps what each sync of the log has made durable, as a database of its own."""

    def __init__(self, store: Store, folder: Path) -> None:
        self._path = Path(str(store.engine.url.database))
        self._folder = folder
        self._sync = os.fdatasync
        self.syncs = 0

    def fsync(self, descriptor: int) -> None:
        assert os.readlink(f"/proc/self/fd/{descriptor}") == f"{self._path}-wal"
        self._sync(descriptor)
        self.syncs += 1
        for suffix in ("", "-wal"):
            shutil.copy(f"{self._path}{suffix}", self._folder / f"durable.db{suffix}")

    def count(self, query: str) -> int:
        with closing(sqlite3.connect(self._folder / "durable.db")) as durable:
            return durable.execute(query).fetchone()[0]


@pytest.fixture
def disk(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    disk = Disk(store, tmp_path)
    monkeypatch.setattr(os, "fdatasync", disk.fsync)
    return disk


@pytest.mark.parametrize("query", DURABLE)
def test_what_was_promised_is_on_the_disk(store: Store, disk: Disk, query: str) -> None:
    DURABLE[query](store)

    assert disk.count(query) == 1


@pytest.mark.parametrize("query", DURABLE)
def test_who_finds_another_ones_row_syncs_it_too(store: Store, disk: Disk, query: str) -> None:
    DURABLE[query](store)
    DURABLE[query](store)

    assert (disk.syncs, disk.count(query)) == (2, 1)


def test_an_unstarted_intent_is_void_on_the_disk(store: Store, disk: Disk) -> None:
    start(store)
    assert store.calls.void_unstarted("turn-1", "c1-0", 1)

    assert disk.count("SELECT count(*) FROM calls WHERE state = 'void'") == 1


def test_other_rows_wait_for_no_disk(store: Store, disk: Disk) -> None:
    store.turns.accept(request())
    store.turns.reject("turn-2", None, "s1", "no", "raw")

    assert (disk.syncs, disk.count("SELECT count(*) FROM turns")) == (1, 1)


def test_a_disk_that_fails_is_an_outage_and_the_same_request_is_taken_again(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(os, "fdatasync", fail)
        with pytest.raises(OperationalError, match="cannot be synced") as raised:
            store.turns.accept(request())

    assert is_sql_unavailable(raised.value)
    assert not store.turns.accept(request()).created
