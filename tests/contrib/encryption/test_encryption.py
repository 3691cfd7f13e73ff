"""Content at rest under one's own keys: the files of SQLite hold none of it, and the client reads all back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import Text, select, type_coerce

from brainq.adapters.celery import names
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import metadata
from brainq.client.connection import cells_of
from brainq.client.erase import erase_everywhere
from brainq.contracts.encryption import SHREDDED, ContentKeyMissing, ContentShredded, ReencryptProgress, key_id_of
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.file import File
from brainq.contrib.cells.move import tenant_mover
from brainq.contrib.encryption import content_keys
from brainq.contrib.encryption.content_keys import ContentKeys, codec_of
from brainq.contrib.encryption.reencrypt import content_columns
from brainq.errors import InvalidInput, ResultTimeout, SetupError
from tests.contrib.cells.two_cells import two_cells, two_servers
from tests.contrib.encryption.key_files import key_file
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.pump import Pump, sqlite_url
from tests.support.server import RedisServer
from tests.support.tenant_content import bytes_with, fill

SECRET = "Zanzibarium"


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    made = RedisServer().start()
    yield made
    made.stop()


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    return key_file(tmp_path)


@pytest.fixture
def redis(server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RedisServer:
    server.command("FLUSHALL")
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))
    return server


@pytest.fixture
def world(redis: RedisServer, tmp_path: Path, keys: Path) -> Iterator[Pump]:
    (tmp_path / "sql").mkdir()
    url = sqlite_url(tmp_path / "sql")
    with Pump(obedient.brain, redis.url, url, content_keys=str(keys)) as pump:
        yield pump


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process has a key in its cache that a removal would have to wait for."""
    monkeypatch.setattr(content_keys, "SETTLE_S", -100.0)


def test_the_files_hold_nothing_that_was_said_and_the_client_reads_all_back(world: Pump, tmp_path: Path) -> None:
    picture = File(b"\x89PNG\r\n\x1a\n" + SECRET.encode(), "image/png", f"{SECRET}.png")
    first = world.submit("acme:7", script(final=f"{SECRET} again"), attachments=[picture], metadata={"on": SECRET})
    world.finish(first)
    ended, parked, _ = fill(world, "acme:", SECRET)
    world.client.cancel("acme:2", parked.turn_id, reason=f"because of {SECRET}")
    assert bytes_with(tmp_path / "sql", SECRET) == bytes_with(tmp_path / "sql", SECRET.lower()) == []
    assert {path.name for path in (tmp_path / "sql").iterdir()} >= {"brainq.db", "brainq.db-wal", "brainq.keys.db"}

    store = world.wiring.store
    assert first.result(timeout_s=1).text == f"{SECRET} again"
    request = store.turns.request(first.turn_id)
    assert request is not None
    assert (request.metadata, store.turns.history("acme:7", "", 9)[0].assistant) == ({"on": SECRET}, f"{SECRET} again")
    assert first.file(picture.attachment.sha256) == picture
    assert store.blobs.load("acme:7", [picture.attachment.sha256]) == {picture.attachment.sha256: picture.data}
    assert [memory.text for memory in store.memories.search("acme:ann", SECRET.lower())] == [f"Likes {SECRET}."]
    assert [turn.turn_id for turn in world.client.turns(search=SECRET, session="acme:7")] == [first.turn_id]
    assert [turn.turn_id for turn in world.client.turns(metadata={"on": SECRET})] == [first.turn_id]
    (call,) = store.calls.of_turn(ended.turn_id)
    assert SECRET in (call.args_json or "")
    assert SECRET in (call.outcome_json or "")
    assert any(SECRET in message.content for message in store.transcripts.of_turn(ended.turn_id))
    assert world.client.schedules()[0].name == "acme:daily"


def test_a_process_without_the_keys_does_not_start(world: Pump) -> None:
    world.finish(world.submit("acme:1", script(final="x")))
    with pytest.raises(SetupError, match="is encrypted, but BRAINQ_CONTENT_KEYS is not set"):
        Store.open(world.settings.sql_url.get_secret_value())


def test_rows_of_before_are_read_beside_new_ones(redis: RedisServer, tmp_path: Path, keys: Path) -> None:
    url = sqlite_url(tmp_path)
    with Pump(obedient.brain, redis.url, url) as before:
        old = before.submit("acme:1", script(final="old"))
        before.finish(old)
    with Pump(obedient.brain, redis.url, url, content_keys=str(keys)) as after:
        new = after.submit("acme:1", script(final="new"))
        after.finish(new)
        found = after.wiring.store.turns.history("acme:1", "", 9)
        assert [turn.assistant for turn in found] == ["old", "new"]
        with after.wiring.store.engine.connect() as connection:
            rows = connection.exec_driver_sql("SELECT content FROM messages ORDER BY row").all()
        assert [key_id_of(row[0]) is None for row in rows] == [True, True, False, False]


def values_of(pump: Pump) -> list[str]:
    """Every text that says something, as SQL has it."""
    found: list[str] = []
    with pump.wiring.store.engine.connect() as connection:
        for table in metadata.sorted_tables:
            for column in content_columns(table):
                found += [row[0] for row in connection.execute(select(type_coerce(column, Text()))) if row[0]]
    return found


def operator_keys(pump: Pump) -> ContentKeys:
    return ContentKeys([("", pump.wiring.store)])


def test_old_content_is_brought_under_keys_rotated_and_back_into_the_clear(
    redis: RedisServer, tmp_path: Path, keys: Path
) -> None:
    (tmp_path / "sql").mkdir()
    url = sqlite_url(tmp_path / "sql")
    with Pump(obedient.brain, redis.url, url) as before:
        ended, *_ = fill(before, "acme:", SECRET)
        said = before.wiring.store.transcripts.of_turn(ended.turn_id)
    with Pump(obedient.brain, redis.url, url, content_keys=str(keys)) as pump:
        verbs, store = operator_keys(pump), pump.wiring.store
        assert set(verbs.in_clear()) >= {"turns", "messages", "transcripts", "calls", "inputs", "memories", "blobs"}
        seen: list[ReencryptProgress] = []
        assert verbs.reencrypt(seen.append) == seen[-1].rows == seen[-1].left > 10
        assert (verbs.in_clear(), verbs.left(), verbs.reencrypt()) == ({}, {}, 0)
        assert bytes_with(tmp_path / "sql", SECRET) == bytes_with(tmp_path / "sql", SECRET.lower()) == []
        assert store.transcripts.of_turn(ended.turn_id) == said
        assert [row.text for row in store.memories.search("acme:ann", SECRET)] == [f"Likes {SECRET}."]
        assert len(store.blobs.load("acme:1", [hash_of(store, ended.turn_id)])) == 1

        first = {key_id_of(value) for value in values_of(pump)}
        assert verbs.rotate("acme:") == 1
        assert verbs.reencrypt() > 10
        assert not first & {key_id_of(value) for value in values_of(pump)}
        assert (verbs.left(), store.transcripts.of_turn(ended.turn_id)) == ({}, said)
        assert len(store.blobs.load("acme:1", [hash_of(store, ended.turn_id)])) == 1

        keys.write_text(f"clear\n{keys.read_text()}")
        assert verbs.reencrypt() > 10
        assert {key_id_of(value) for value in values_of(pump)} == {None}
        assert verbs.left() == {}
    with Pump(obedient.brain, redis.url, url) as after:
        store = after.wiring.store
        assert store.transcripts.of_turn(ended.turn_id) == said
        assert [row.text for row in store.memories.search("acme:ann", SECRET)] == [f"Likes {SECRET}."]
        assert len(store.blobs.load("acme:1", [hash_of(store, ended.turn_id)])) == 1


def hash_of(store: Store, turn_id: str) -> str:
    request = store.turns.request(turn_id)
    assert request is not None
    return request.attachments[0].sha256


def test_a_shredded_tenant_is_unreadable_and_others_are_not(world: Pump, at_once: None) -> None:
    others = world.submit("beta:1", script(final="theirs"))
    turn = world.submit("acme:1", script(final=SECRET))
    verbs, store = operator_keys(world), world.wiring.store
    with pytest.raises(InvalidInput, match=r"'acme:' has 1 turns that have not ended, such as .*brainq erase --tenant"):
        verbs.shred("acme:")
    world.finish(turn)
    world.finish(others)
    assert verbs.shred("acme:") == 1
    codec = codec_of(cells_of(world.client).home.store)
    assert codec is not None
    codec.forget()  # which its cache does by itself in ten seconds
    with pytest.raises(ContentShredded, match="of tenant 'acme:' was removed"):
        store.turns.request(turn.turn_id)
    rows = world.client.turns(limit=10)
    assert {row.session_id: row.message == SHREDDED for row in rows} == {"acme:1": True, "beta:1": False}
    assert [row.turn_id for row in world.client.turns(search="theirs")] == [others.turn_id]
    assert (verbs.left(), verbs.reencrypt()) == ({}, 0)
    assert store.turns.request(others.turn_id) is not None
    again = world.submit("acme:2", script(final="anew"))
    assert world.finish(again).text == "anew"
    assert [key.state for key in verbs.list() if key.tenant != ":"] == ["shredded", "current", "current"]


def test_a_key_that_is_away_is_waited_for(world: Pump, keys: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The finalizer cannot write, and then can: the turn is not lost by it."""
    turn = world.submit("acme:1", script(final="kept"))
    world.drain(names.TURNS_QUEUE)
    kept = keys.read_text()
    key_file(keys.parent, "op-1")
    codec = codec_of(world.wiring.store)
    assert codec is not None
    codec.forget()
    with pytest.raises(ContentKeyMissing, match="'op-1' in the file is not the one"):
        world.wiring.store.turns.request(turn.turn_id)
    world.drain()
    assert world.wiring.store.turns.result(turn.turn_id) is None
    assert "put the right one back under this name" in caplog.text, "a worker's log has the remedy"
    keys.write_text(kept)
    codec.forget()
    assert world.finish(turn).text == "kept"
    assert world.wiring.store.turns.history("acme:1", "", 9)[0].assistant == "kept"


def test_an_erased_tenants_keys_go_with_it(world: Pump, tmp_path: Path, at_once: None) -> None:
    turn = world.submit("acme:1", script(final=SECRET))
    with pytest.raises(ResultTimeout, match="nothing was erased"):
        erase_everywhere(cells_of(world.client), ErasureScope.of(None, "acme:"), wait_s=0)
    assert "leaving" not in [key.state for key in operator_keys(world).list()], "its content stays, and so do they"
    world.finish(turn)
    assert operator_keys(world).shred("acme:") == 1
    again = world.submit("acme:1", script(final=SECRET))
    world.finish(again)
    done = erase_everywhere(cells_of(world.client), ErasureScope.of(None, "acme:"), by="Ann")
    assert (done.left, done.rows["tenant_keys"]) == ({}, 1)
    assert {key.state for key in operator_keys(world).list() if key.tenant != ":"} == {"shredded"}
    assert bytes_with(tmp_path / "sql", "acme:") == [], "nor is its name beside its keys"


def test_a_moved_tenant_is_under_the_other_cells_keys(
    redis: RedisServer, tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINQ_CONTENT_KEYS", str(keys))
    with two_servers() as servers:
        urls = {name: server.url for name, server in servers.items()}
        with two_cells(obedient.brain, urls, tmp_path) as cells, closing(cells.front()) as front:
            turn = front.submit("acme:1", script(final=SECRET))
            cells.pumps[turn.turn_id[0]].finish(turn)
            other = "b" if turn.turn_id[0] == "a" else "a"
            before = {key_id_of(value) for value in values_of(cells.pumps[turn.turn_id[0]])}
            tenant_mover(cells_of(front), "me").move("acme:", other)
            assert front.handle(turn.turn_id).result(timeout_s=1).text == SECRET
            after = {key_id_of(value) for value in values_of(cells.pumps[other])}
            assert None not in after
            assert not before & after


def test_open_turns_of_the_tenant_without_a_colon_are_seen_behind_many_others(
    world: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(content_keys, "TURNS_AT_ONCE", 1)
    for session_id in ("acme:1", "plain"):
        world.submit(session_id, script(final="x"))
    with pytest.raises(InvalidInput, match="':' has 1 turns that have not ended"):
        operator_keys(world).shred(":")
