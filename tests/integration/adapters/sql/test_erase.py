"""Rows of a session or a tenant are erased, from SQLite and from Postgres, and no row of another's."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from brainq.adapters.sql import erase as erase_module
from brainq.adapters.sql.erase import SqlErasure
from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import metadata
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.file import File
from brainq.contracts.memory import MemoryItem
from brainq.contracts.people import TurnInput
from tests.integration.adapters.sql.examples import request, schedule

FILES = {"acme:": b"acme's own", "acme2:": b"another's", "both": b"everybody's"}


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erase_module, "BATCH", 2)


def fill(store: Store, tenant: str, scope: str) -> None:
    """Five turns of a tenant, with files, input, a schedule and what was learned of a scope."""
    for number in range(5):
        sid, tid = f"{tenant}{number % 2}", f"t-{tenant[:-1]}-{number}"
        asked = request(tid, sid, request_key=tid)
        store.turns.accept(asked)
        store.messages.log_user(asked, redact=False)
        store.blobs.keep(sid, tid, [File(FILES[name], "text/plain", name) for name in (tenant, "both")])
        item = MemoryItem(kind="fact", text=f"Likes tea {number}.")
        SqlRecords(store).record_memories(FinalStepClaim(sid, tid, "memory", "me", 1, 1), scope, [item])
    store.inputs.accept(f"{tenant}0", f"t-{tenant[:-1]}-0", TurnInput(client_message_id="m1", text="and more"))
    store.schedules.put(schedule(f"{tenant}daily"), 0, 10)


def rows(store: Store) -> dict[str, int]:
    with store.engine.connect() as connection:
        return {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }


def found(store: Store, word: str) -> list[str]:
    """Tables of which a row has the word in any column."""
    with store.engine.connect() as connection:
        return [
            table.name
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
            if any(word in str(value) for value in row)
        ]


def test_a_tenant_is_erased_and_a_name_that_only_looks_like_it_stays(store: Store) -> None:
    fill(store, "acme2:", "acme2:ann")
    alone = rows(store)
    fill(store, "acme:", "acme:ann")
    erasure = SqlErasure(store.database, ErasureScope.of(None, "acme:"))
    assert erasure.left()
    counts = erasure.erase()
    assert (counts["turns"], counts["blobs"], counts["attachments"], counts["memories"]) == (5, 1, 10, 5)
    assert (found(store, "acme:"), found(store, "t-acme-")) == ([], [])
    assert (rows(store), erasure.left()) == (alone, {})
    assert not any(erasure.erase().values()), "again finds nothing"


def test_what_others_taught_a_shared_scope_stays_without_the_name_of_the_turn_that_repeated_it(store: Store) -> None:
    fill(store, "acme2:", "shared")
    fill(store, "acme:", "shared")
    assert {row.last_turn_id[:7] for row in store.memories.list("shared")} == {"t-acme-"}
    SqlErasure(store.database, ErasureScope.of(None, "acme:")).erase()
    assert len(store.memories.list("shared")) == 5
    assert found(store, "t-acme-") == []


def test_of_a_session_its_neighbours_stay(store: Store) -> None:
    fill(store, "acme:", "acme:0")
    counts = SqlErasure(store.database, ErasureScope.of("acme:0", None)).erase()
    assert (counts["turns"], counts["inputs"], counts["blobs"], counts["schedules"]) == (3, 1, 0, 0)
    assert {row.session_id for row in store.turns.list(None, None, 10)} == {"acme:1"}
    assert store.memories.list("acme:0") == [], "its scope, whoever wrote there"


def test_files_of_a_submit_that_never_became_a_turn_go_too(store: Store) -> None:
    store.blobs.keep("acme:1", "t-refused", [File(b"x", "text/plain", "x")])
    erasure: Any = SqlErasure(store.database, ErasureScope.of(None, "acme:"))
    counts = erasure.erase()
    assert (counts["attachments"], counts["blobs"], erasure.left()) == (1, 1, {})


def test_a_file_of_sqlite_has_no_byte_of_it_and_postgres_says_when(store: Store) -> None:
    if store.engine.dialect.name == "sqlite":
        with store.engine.connect() as connection:  # some builds of SQLite overwrite what they delete; most do not
            connection.exec_driver_sql("PRAGMA secure_delete = OFF")
    fill(store, "acme:", "acme:ann")
    erasure = SqlErasure(store.database, ErasureScope.of(None, "acme:"))
    erasure.erase()
    note = erasure.scrub()
    if store.engine.dialect.name == "postgresql":
        assert "until the next VACUUM" in note
        return
    assert note == ""
    path = str(store.engine.url.database)
    for name in (path, f"{path}-wal"):
        with open(name, "rb") as file:
            assert b"acme" not in file.read()
