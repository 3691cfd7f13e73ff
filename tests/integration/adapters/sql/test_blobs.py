"""Bytes in SQL: once, and for those sessions alone whose turns have them."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import text

from brainq.adapters.sql.repositories.blobs import drop_unused, unlink
from brainq.adapters.sql.store import Store
from brainq.contracts.file import File
from tests.support.blobs import pdf, png
from tests.support.wait import wait_until

PICTURE = File(png(), name="plan.png")
SHA = PICTURE.attachment.sha256


def blob_rows(store: Store) -> int:
    with store.engine.connect() as connection:
        return int(connection.execute(text("SELECT count(*) FROM blobs")).scalar_one())


def test_bytes_come_back_as_they_were_and_twice_is_one_row(store: Store) -> None:
    for turn_id in ("t-1", "t-2", "t-1"):
        store.blobs.keep("s1", turn_id, [PICTURE, File(pdf())])

    assert blob_rows(store) == 2
    assert store.blobs.load("s1", [SHA, "0" * 64]) == {SHA: png()}
    assert store.blobs.of_turn("t-2", SHA) == PICTURE


def test_a_hash_alone_opens_nothing(store: Store) -> None:
    store.blobs.keep("s1", "t-1", [PICTURE])

    assert store.blobs.load("s2", [SHA]) == {}
    assert store.blobs.of_turn("t-2", SHA) is None
    store.blobs.lend("s1", "t-2", [PICTURE.attachment])
    assert store.blobs.of_turn("t-2", SHA) == PICTURE


def test_what_one_turn_forgets_another_still_has(store: Store) -> None:
    store.blobs.keep("s1", "t-1", [PICTURE, File(pdf())])
    store.blobs.keep("s2", "t-2", [PICTURE])

    for _ in range(2):
        with store.database.transaction() as connection:
            unlink(connection, ["t-1"])

    assert blob_rows(store) == 1
    assert store.blobs.load("s1", [SHA]) == {}
    assert store.blobs.load("s2", [SHA]) == {SHA: png()}


def test_who_keeps_a_blob_while_it_is_dropped_has_it(store: Store) -> None:
    """A pruning holds the row; whoever sends the same bytes meanwhile waits, and writes it again."""
    store.blobs.keep("s1", "t-1", [PICTURE])
    kept: list[bool] = []
    sender = threading.Thread(target=lambda: (store.blobs.keep("s2", "t-2", [PICTURE]), kept.append(True)))
    with store.database.transaction() as connection:
        connection.write(text("DELETE FROM attachments"), {})
        assert drop_unused(connection, [SHA]) == 1
        sender.start()
        assert not kept
    wait_until(lambda: kept, "the bytes are kept")
    sender.join()
    assert store.blobs.load("s2", [SHA]) == {SHA: png()}


@pytest.mark.parametrize("hashes", [[], [SHA]])
def test_nothing_there_is_nothing(store: Store, hashes: list[str]) -> None:
    store.blobs.keep("s1", "t-1", [])
    assert store.blobs.load("s1", hashes) == {}
