"""Values on both databases: brought under keys and under newer ones beside a writer, and gone on with after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import attachments, blobs, metadata
from brainq.contracts.call import ToolSuccess
from brainq.contracts.encryption import ContentKeyMissing, KeyPlace, key_id_of
from brainq.contracts.file import File
from brainq.contracts.history import TurnFilter
from brainq.contracts.ids import CHILD_TURN_PREFIX
from brainq.contracts.memory import MemoryItem
from brainq.contracts.people import TurnInput
from brainq.contracts.turn import ParentCall
from brainq.contrib.encryption.content_keys import ContentKeys, codec_of
from brainq.contrib.encryption.reencrypt import content_columns
from tests.contrib.encryption.key_files import key_file
from tests.integration.adapters.sql.conftest import Backend
from tests.integration.adapters.sql.examples import end_turn, request, schedule, start

SECRET = "Zanzibarium"
PICTURE = File(b"\x89PNG\r\n\x1a\n" + SECRET.encode(), "image/png", "a.png")


@pytest.fixture
def place(store_url: str, tmp_path: Path) -> KeyPlace:
    made = KeyPlace.of(str(key_file(tmp_path)), f"sqlite:///{tmp_path / 'of-their-own.db'}", store_url)
    assert made is not None
    return made


@pytest.fixture
def keyed(store_url: str, place: KeyPlace) -> Iterator[Store]:
    with Store.open(store_url, migrate=False, keys=place) as opened:
        yield opened


def write(store: Store, turn_id: str, session_id: str) -> None:
    """A turn with content in most tables."""
    store.turns.accept(request(turn_id, session_id, SECRET, request_key=turn_id))
    store.messages.log_user(request(turn_id, session_id, SECRET), redact=False)
    start(store, turn_id=turn_id)
    store.calls.record_outcome(turn_id, "c1-0", 1, ToolSuccess(value=SECRET), late=False)
    store.blobs.keep(session_id, turn_id, [PICTURE])
    store.steps.note_failure(turn_id, "extra", f"it said {SECRET}", 1, dead=False)
    with store.database.transaction() as connection:
        items = [MemoryItem(kind="fact", text=f"Likes {SECRET} in {turn_id}.")]
        store.memories.merge(connection, scope=session_id, session_id=session_id, turn_id=turn_id, items=items)
    end_turn(store, turn_id, session_id, SECRET)


def is_all_there(store: Store, turn_id: str, session_id: str) -> bool:
    found, outcome = store.turns.request(turn_id), store.calls.of_turn(turn_id)[0].outcome
    answer, errors = store.turns.result(turn_id), [step.error for step in store.steps.of_turn(turn_id)]
    return (
        found is not None
        and answer is not None
        and found.user_message == answer.text == SECRET
        and outcome == ToolSuccess(value=SECRET)
        and f"it said {SECRET}" in errors
        and store.blobs.load(session_id, [PICTURE.attachment.sha256]) == {PICTURE.attachment.sha256: PICTURE.data}
        and any(turn_id in row.text for row in store.memories.search(session_id, SECRET, limit=10_000))
    )


def raw_text(store: Store) -> str:
    """All that its tables hold."""
    with store.engine.connect() as connection:
        rows = [row for table in metadata.sorted_tables for row in connection.execute(select(table))]
    return " ".join(
        bytes(value).decode("latin-1") if isinstance(value, bytes) else str(value) for row in rows for value in row
    )


def key_ids(store: Store) -> set[str | None]:
    with store.engine.connect() as connection:
        return {
            key_id_of(row[0])
            for table in metadata.sorted_tables
            for column in content_columns(table)
            for row in connection.execute(select(column))
            if row[0]
        }


def test_old_rows_are_brought_under_keys_and_then_under_newer_ones(store: Store, keyed: Store, place: KeyPlace) -> None:
    write(store, "t-1", "acme:1")
    write(keyed, "t-2", "acme:2")
    assert is_all_there(keyed, "t-1", "acme:1")
    verbs = ContentKeys([("", keyed)])
    assert verbs.in_clear()["blobs"] == 1
    assert verbs.reencrypt() > 5
    assert SECRET not in raw_text(keyed)
    assert SECRET.lower() not in raw_text(keyed)
    before = key_ids(keyed)
    assert verbs.rotate() == 2, "of acme:, and of calls whose session is s1"
    assert verbs.reencrypt() > 10
    assert not before & key_ids(keyed)
    assert (verbs.left(), verbs.in_clear()) == ({}, {})
    assert is_all_there(keyed, "t-1", "acme:1")
    assert is_all_there(keyed, "t-2", "acme:2")
    with keyed.engine.connect() as connection:
        assert len(connection.execute(select(blobs.c.sha256)).all()) == 1, "one a tenant"


def test_a_run_that_stops_in_the_middle_is_gone_on_with(store: Store, keyed: Store) -> None:
    for number in range(3):
        write(store, f"t-{number}", "acme:1")
    verbs = ContentKeys([("", keyed)])

    def stop(_: object) -> None:
        raise InterruptedError

    with pytest.raises(InterruptedError):
        verbs.reencrypt(stop)
    left = sum(verbs.left().values())
    assert 0 < left < sum(verbs.in_clear().values()) + 99
    assert verbs.reencrypt() == left
    assert all(is_all_there(keyed, f"t-{number}", "acme:1") for number in range(3))


@pytest.mark.full
def test_a_rotation_under_load_loses_nothing(keyed: Store) -> None:
    verbs, over = ContentKeys([("", keyed)]), threading.Event()
    write(keyed, "t-0", "acme:1")
    written = ["t-0"]

    def load() -> None:
        while not over.is_set():
            write(keyed, f"t-{len(written)}", "acme:1")
            written.append(f"t-{len(written)}")

    writer = threading.Thread(target=load)
    writer.start()
    try:
        for _ in range(5):
            verbs.rotate("acme:")
            verbs.reencrypt()
    finally:
        over.set()
        writer.join()
    verbs.reencrypt()
    assert (verbs.left(), len(written) > 5) == ({}, True)
    assert all(is_all_there(keyed, turn_id, "acme:1") for turn_id in written)


@pytest.mark.full
def test_a_process_that_is_killed_in_the_middle_is_started_again(
    backend: Backend, store: Store, keyed: Store, store_url: str, place: KeyPlace, tmp_path: Path
) -> None:
    for number in range(300):
        store.turns.accept(request(f"t-{number}", "acme:1", f"{SECRET} {number}", request_key=f"t-{number}"))
    environment = {**os.environ, "BRAINQ_SQL_URL": store_url, "BRAINQ_CONTENT_KEYS": place.file}
    environment |= {"BRAINQ_KEYS_URL": place.url, "BRAINQ_REDIS_URL": "redis://127.0.0.1:1/0"}
    command = [sys.executable, "-m", "brainq", "keys", "reencrypt"]
    first = subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert first.stderr is not None
    assert "turns: 200 of 300" in first.stderr.readline()
    first.send_signal(signal.SIGKILL)
    first.communicate()
    left = sum(ContentKeys([("", keyed)]).left().values())
    assert 0 < left <= 100
    again = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "all content is done" in again.stderr
    assert SECRET not in raw_text(keyed)
    found = keyed.turns.request("t-299")
    assert found is not None
    assert found.user_message == f"{SECRET} 299"


def lose_key(store: Store, tenant: str) -> None:
    """The tenant's key is not among the keys any more, and no process has it in its cache."""
    codec = codec_of(store)
    assert codec is not None
    with codec.keys._engine.begin() as connection:  # pyright: ignore[reportPrivateUsage]
        connection.exec_driver_sql(f"DELETE FROM tenant_keys WHERE tenant = '{tenant}'")
    codec.forget()


def test_a_row_whose_key_is_missing_holds_up_no_other(keyed: Store, caplog: pytest.LogCaptureFixture) -> None:
    for tenant in ("acme:", "beta:"):
        for at in ("1", "2"):
            keyed.schedules.put(schedule(f"{tenant}{at}", int(at)).model_copy(update={"session_id": tenant}), 0)
            keyed.inputs.accept(f"{tenant}1", f"{tenant}t", TurnInput(client_message_id=f"{tenant}{at}", text=SECRET))
    parent = ParentCall(session_id="acme:0", turn_id="t-0", call_id="c1-0")
    keyed.turns.accept(request(f"{CHILD_TURN_PREFIX}x", "acme:1", SECRET, parent=parent))
    lose_key(keyed, "acme:")
    (listed,) = keyed.turn_lists.unended(TurnFilter(), None, 9)
    assert (listed.turn.parent, "which is not here" in (listed.turn.message or "")) == (None, True)
    assert keyed.turn_lists.rows_with_text([listed.row], TurnFilter(search=SECRET)) == set()
    for _ in range(2):
        assert [row.name for row in keyed.schedules.due(9, 1)] == ["beta:1"], "not even where they fill a page"
        assert [row.name for row in keyed.schedules.due(9, 9)] == ["beta:1", "beta:2"]
        found = keyed.inputs.open(0, 9, 0)
        assert [(row.client_message_id, row.text) for row in found if not row.is_unreadable] == [
            ("beta:1", SECRET),
            ("beta:2", SECRET),
        ]
        assert len(found) == 4, "they keep their places in the page"
    said = [record.getMessage() for record in caplog.records if "waits for its key" in record.getMessage()]
    assert len(said) == 4, "each once"
    assert "acme:1" in said[0]
    assert "not among the tenants' keys; restore" in said[0]


def test_what_is_being_shredded_is_not_brought_under_a_key_that_stays(keyed: Store) -> None:
    write(keyed, "t-1", "acme:1")
    codec = codec_of(keyed)
    assert codec is not None
    before, verbs = key_ids(keyed), ContentKeys([("", keyed)])
    codec.keys.leave("acme:")
    codec.forget()  # as a process whose cache has run out: new values of the tenant are under a newer key
    assert verbs.reencrypt() == 0
    assert (key_ids(keyed), verbs.left() != {}) == (before, True)
    codec.keys.stay("acme:")
    assert codec.keys.shred("acme:") == 0
    assert verbs.reencrypt() > 5
    assert is_all_there(keyed, "t-1", "acme:1")


def test_a_key_that_is_missing_does_not_keep_other_tenants_content_from_its_new_key(keyed: Store) -> None:
    for number, tenant in enumerate(("acme:1", "beta:1", "acme:2", "beta:2")):
        keyed.turns.accept(request(f"t-{number}", tenant, SECRET, request_key=f"t-{number}"))
        keyed.blobs.keep(tenant, f"t-{number}", [PICTURE])
    verbs = ContentKeys([("", keyed)])
    verbs.rotate("beta:")
    lose_key(keyed, "acme:")
    with pytest.raises(ContentKeyMissing, match="not among the tenants' keys; restore"):
        verbs.reencrypt()
    current = {key.key_id for key in verbs.list() if (key.tenant, key.state) == ("beta:", "current")}
    assert current < key_ids(keyed)
    assert len(key_ids(keyed)) == 2, "the lost one's, and that of the other tenant"


def test_a_file_by_both_of_its_names_is_brought_to_one(store: Store, keyed: Store) -> None:
    """As two processes leave it of which one had not seen yet that the file of keys has changed."""
    looks_alike = File(b"bqe1:0123456789ab:said by somebody", "text/plain", "b.txt")
    for each in (store, keyed):
        each.blobs.keep("acme:1", "t-1", [PICTURE])
    store.blobs.keep("acme:1", "t-1", [looks_alike])
    hashes = {file.attachment.sha256: file.data for file in (PICTURE, looks_alike)}
    assert keyed.blobs.load("acme:1", hashes) == hashes
    verbs = ContentKeys([("", keyed)])
    assert verbs.reencrypt() > 0
    assert (verbs.left(), keyed.blobs.load("acme:1", hashes)) == ({}, hashes)
    with keyed.engine.connect() as connection:
        assert len(connection.execute(select(attachments)).all()) == len(connection.execute(select(blobs)).all()) == 2


def test_a_newer_key_whose_maker_was_killed_is_the_current_one(keyed: Store) -> None:
    write(keyed, "t-1", "acme:1")
    verbs = ContentKeys([("", keyed)])
    verbs.rotate("acme:")
    codec = codec_of(keyed)
    assert codec is not None
    with codec.keys._engine.begin() as connection:  # pyright: ignore[reportPrivateUsage]
        connection.exec_driver_sql("UPDATE tenant_keys SET state = 'current'")  # it had not said that of the older one
    assert verbs.reencrypt() > 5
