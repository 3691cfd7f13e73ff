"""Erasing a session or a tenant: nothing of it is left, by looks of this page's own, and others keep theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from brainq.adapters.sql.erase import SqlErasure
from brainq.adapters.sql.records import SqlRecords
from brainq.client.connection import cells_of
from brainq.client.erase import erase, erase_everywhere
from brainq.client.operator import Operator
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.erasure import Erasure, ErasureScope
from brainq.contracts.memory import MemoryItem
from brainq.contrib.cells.placements import Directory
from brainq.errors import InvalidInput, NotFound, ResultTimeout
from tests.contrib.cells.two_cells import TwoCells, two_cells, two_servers
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.pump import Pump, sqlite_url
from tests.support.server import RedisServer
from tests.support.tenant_content import bytes_with, fill, rows_with
from tests.support.wait import wait_until

SECRET = "Zanzibarium"


"""They are of who may ask, not of what was asked."""
WITH_CONTENT = {"turns", "messages", "blobs", "memories", "observations", "schedules", "inputs"}


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    made = RedisServer(durable=True).start()
    yield made
    made.stop()


@pytest.fixture
def redis(server: RedisServer) -> RedisServer:
    server.command("FLUSHALL")
    return server


@pytest.fixture
def world(redis: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pump]:
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))  # what tools keep themselves is not brainq's to erase
    (tmp_path / "sql").mkdir()
    with Pump(obedient.brain, redis.url, sqlite_url(tmp_path / "sql")) as pump:
        yield pump


def erased(pump: Pump, scope: ErasureScope, **options: Any) -> Erasure:
    """Erase in a thread, and do meanwhile what workers do."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(erase(pump.wiring, scope, by="Ann", **options))
        except Exception as failure:
            found.append(failure)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive():
        if not pump.drain():
            pump.sweep()
            thread.join(0.02)
    if isinstance(found[0], Exception):
        raise found[0]
    return found[0]


def keys_with(pump: Pump, word: str) -> list[str]:
    """Keys of Redis whose name or value has the word."""
    client: Any = pump.wiring.state.redis
    readers: dict[str, Callable[[str], Any]] = {
        "string": client.get,
        "list": lambda key: client.lrange(key, 0, -1),
        "hash": client.hgetall,
        "set": client.smembers,
        "zset": lambda key: client.zrange(key, 0, -1),
        "stream": client.xrange,
    }
    return [key for key in client.keys("*") if word in key or word in str(readers[client.type(key)](key))]


def test_nothing_of_a_tenant_is_left_and_others_keep_all(world: Pump, tmp_path: Path, redis: RedisServer) -> None:
    fill(world, "acme:", SECRET)
    fill(world, "acme2:", "Otherland")
    theirs = sorted(rows_with(world, "acme2:")), sorted(keys_with(world, "acme2:"))
    assert set(rows_with(world, SECRET)) >= WITH_CONTENT
    assert keys_with(world, SECRET)
    assert bytes_with(tmp_path / "sql", SECRET)
    assert bytes_with(redis.directory, SECRET)

    done = erased(world, ErasureScope.of(None, "acme:"))

    # The input that no step had read became a turn of its own when its turn was cancelled.
    assert (done.scope, done.is_tenant, done.by, done.turns, done.left) == ("acme:", True, "Ann", 4, {})
    assert (done.rows["blobs"], done.rows["memories"], done.notes) == (1, 2, ())
    assert (rows_with(world, "acme:"), rows_with(world, SECRET)) == ([], [])
    assert (keys_with(world, "acme:"), keys_with(world, SECRET)) == ([], [])
    assert (sorted(rows_with(world, "acme2:")), sorted(keys_with(world, "acme2:"))) == theirs
    assert bytes_with(tmp_path / "sql", SECRET) == []
    wait_until(lambda: not bytes_with(redis.directory, SECRET), "Redis has written its file anew")

    again = erased(world, ErasureScope.of(None, "acme:"))
    assert (again.turns, again.rows, again.keys, again.left) == (0, {}, 0, {})


def test_one_session_goes_and_its_neighbours_stay(world: Pump) -> None:
    fill(world, "acme:", SECRET)
    neighbour = world.submit("acme:10", script(final="stays"))
    world.finish(neighbour)
    done = erased(world, ErasureScope.of("acme:1", None))
    assert (done.turns, done.left) == (1, {})
    assert {row.session_id for row in world.wiring.store.turns.list(None, None, 100)} == {"acme:2", "acme:10"}
    assert neighbour.result(timeout_s=1).text == "stays"
    assert world.client.schedules()[0].name == "acme:daily", "that is no single session's"


def test_a_session_that_was_erased_begins_anew(world: Pump) -> None:
    fill(world, "acme:", SECRET)
    erased(world, ErasureScope.of(None, "acme:"))
    turn = world.submit("acme:1", script(final="anew"))
    assert world.finish(turn).text == "anew"
    assert [row.turn_id for row in world.client.session("acme:1").history()] == [turn.turn_id]


def test_while_its_turns_do_not_end_nothing_is_erased(world: Pump) -> None:
    turn = world.submit("acme:1", script([("write", {"name": SECRET})], final="x"))
    bell = world.take()
    assert bell is not None, "a worker has it, and does not answer"
    with pytest.raises(ResultTimeout, match=rf"1 turns of session 'acme:1' are not over.*{turn.turn_id}.*nothing was"):
        erase(world.wiring, ErasureScope.of("acme:1", None), wait_s=0)
    assert rows_with(world, SECRET)


def test_what_is_found_again_is_deleted_again_and_what_stays_is_said(
    world: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A finalizer step that was at work writes its row after the first look; one that always writes is named."""
    ended, *_ = fill(world, "acme:", SECRET)
    late = iter(["late", *[""] * 9])
    erase_rows = SqlErasure.erase

    def write_late(self: SqlErasure) -> Any:
        counts = erase_rows(self)
        if step := next(late):
            claim = FinalStepClaim("acme:1", ended.turn_id, step, "me", 1, 1)
            items = [MemoryItem(kind="fact", text=f"Late {SECRET}.")]
            SqlRecords(world.wiring.store).record_memories(claim, "acme:late", items)
        return counts

    monkeypatch.setattr(SqlErasure, "erase", write_late)
    done = erased(world, ErasureScope.of(None, "acme:"))
    assert (done.left, done.rows["memories"]) == ({}, 3)

    assert rows_with(world, ended.turn_id) == []

    late = iter(f"late{number}" for number in range(9))
    done = erased(world, ErasureScope.of(None, "acme:"))
    assert set(done.left) >= {"memories"}


@pytest.mark.parametrize(
    ("session", "tenant", "problem"),
    [
        (None, None, "give one of session and tenant"),
        ("a", "a:", "give one of session and tenant"),
        (None, "*", "everybody"),
        (None, "acme", "end it with a colon"),
        ("a b", None, "is not a valid id"),
    ],
)
def test_what_names_no_one_is_refused(session: str | None, tenant: str | None, problem: str) -> None:
    with pytest.raises(InvalidInput, match=problem):
        ErasureScope.of(session, tenant)


@pytest.fixture
def both(tmp_path: Path) -> Iterator[TwoCells]:
    with two_servers() as servers:
        urls = {name: server.url for name, server in servers.items()}
        with two_cells(obedient.brain, urls, tmp_path) as cells:
            yield cells


def test_a_tenant_is_erased_in_every_cell(both: TwoCells) -> None:
    with closing(both.front()) as front:
        for sid in ("plain", "acme:1"):
            turn = front.submit(sid, script(final="done"))
            both.pumps[turn.turn_id[0]].finish(turn)
        cells = cells_of(front)
        done = erase_everywhere(cells, ErasureScope.of("plain", None), by="Ann")
        assert (done.turns, done.rows["tenant_cells"], done.left) == (1, 1, {})
        assert Directory(cells.home.store.database).placement("plain") is None
        assert [row.session_id for row in front.turns()] == ["acme:1"]
        assert erase_everywhere(cells, ErasureScope.of("acme:1", None)).rows.get("tenant_cells", 0) == 0
        assert Directory(cells.home.store.database).placement("acme:") is not None, "a session is not its tenant"


def test_a_bulks_report_that_names_it_goes_and_the_audit_log_keeps_no_name(world: Pump) -> None:
    mine, other = (world.client.bulk("cancel", f"tenant={name}", dry_run=True) for name in ("acme", "acme2"))
    with Operator(world.settings, world.wiring.brains) as operator:
        assert operator.erase(tenant="acme:", by="ann").left == {}
    with pytest.raises(NotFound):
        world.client.bulk_report(mine.id)
    assert world.client.bulk_report(other.id).state == "done"
    (act,) = world.client.audit(act="erase")
    assert (act.who, act.subject, act.session_id) == ("ann", "", "")
