"""`brainq redis move`: all data in Redis moves to another server, to a cluster and back, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import redis

from brainq.adapters.redis import server_move
from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.fleet import RedisWorkers
from brainq.adapters.redis.key_contents import copy_keys, read_keys
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.server_move import MovePlace, ServerMove
from brainq.app.wiring import Wiring
from brainq.app.wiring.preflight import check_redis
from brainq.contracts.fleet import FleetWorker
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.errors import ExitCode, MoveFailed, Unreachable
from brainq.runtime.settings.deployment import load_settings
from tests.integration.client.test_schedules import begin_due, set_due
from tests.support.cluster import RedisCluster
from tests.support.commands import Brainq, commands
from tests.support.people import awaits, brain_of, history
from tests.support.pump import Pump, sqlite_url

OLD, NEW = "bq:", "{other}:"
SCRIPTS = {"asks": [calls(("write", {"name": "x"}))], "waits": [calls(("note", {"name": "y"}))]}


def replies(request: ModelRequest) -> ModelReply:
    """By the turn's own message: its calls, one a step, and then its name."""
    said = [message.content for message in request.messages if message.role == "user"][-1]
    script = SCRIPTS.get(said, [])
    return script[request.step - 1] if request.step <= len(script) else says(f"{said}: done")


@pytest.fixture
def brainq(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Brainq:
    monkeypatch.setenv("BRAINQ_SQL_URL", sqlite_url(tmp_path))
    return commands(monkeypatch, capsys)


@pytest.fixture
def ends(redis_url: str) -> Iterator[tuple[MovePlace, MovePlace]]:
    """Two prefixes of one server."""
    places = (MovePlace(redis_url, "redis://old/0", OLD), MovePlace(redis_url, "redis://new/0", NEW))
    yield places
    for place in places:
        place.close()


def run(ends: Sequence[MovePlace], foreign: Sequence[str] = ()) -> dict[str, int]:
    """Return how many keys each phase has seen at last."""
    source, target = ends
    return {step.phase: step.seen for step in ServerMove(source, target, foreign).run()}


def names(place: MovePlace) -> list[str]:
    return sorted(map(str, place.client.keys(f"{place.keys.prefix}*")))


def contents_of(cluster: RedisCluster) -> list[object]:
    """Return the contents of all keys of a cluster."""
    found: list[object] = []
    for port in cluster.primaries():
        with redis.Redis(port=port) as client:
            found += read_keys(client, cast("list[bytes]", client.keys("*")))
    return found


def test_a_deployment_moves_to_a_cluster_and_back_with_everything_that_waits(
    redis_url: str, whole: RedisCluster, tmp_path: Path, brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    brain = brain_of(ScriptedProvider(rules=replies), ran, approval="It changes things.")
    sql_url = f"sqlite:///{tmp_path / 'brainq.db'}"
    with Pump(brain, redis_url, sql_url) as pump:
        assert pump.finish(pump.submit("s1", "hello")).text == "hello: done"
        parked = [pump.submit(f"parked{number}", "asks").turn_id for number in range(2)]
        pump.drain()
        queued = [pump.submit(f"parked{number}", "waits").turn_id for number in range(2)]
        rung = pump.submit("s2", "hello").turn_id
        pump.client.schedule("daily", "s3", "hello", in_s=3600)

    monkeypatch.setenv("BRAINQ_SQL_URL", sql_url)
    monkeypatch.setenv("BRAINQ_REDIS_URL", redis_url)
    moved = brainq("redis", "move", "--to", whole.url)
    assert moved.code == 0, moved.err
    assert f"moved to {whole.url}; set BRAINQ_REDIS_URL to it" in moved.err
    assert not any(OLD.encode() in str(content).encode() for content in contents_of(whole)), "no value names an old key"
    with Pump(brain, whole.url, sql_url) as pump:
        acts = [(act.act, act.subject) for act in pump.wiring.store.acts.list(1)]
        assert acts == [("move redis", f"{redis_url} {whole.url}")]
        assert [message.content for message in history(pump, "s1")] == ["hello", "hello: done"]
        assert pump.finish(pump.client.handle(rung)).text == "hello: done", "its message in the queue came along"
        set_due(pump, "daily", ago_s=1)
        assert begin_due(pump) == 1
        handle = pump.client.handle(parked[0])
        assert awaits(handle) == "parked people"
        assert pump.client.approve(handle.approvals()[0].id)
        assert [pump.finish(pump.client.handle(turn)).text for turn in (parked[0], queued[0])] == [
            *("asks: done", "waits: done")
        ]

    monkeypatch.setenv("BRAINQ_REDIS_URL", whole.url)
    back = brainq("redis", "move", "--to", redis_url)
    assert back.code == 0, back.err
    left = {key for port in whole.primaries() for key in whole.ask(port, "KEYS", "*")}
    assert left <= {"{bq}:epoch", "{bq}:run"}, "what closes it, and what lasts ten seconds"
    with Pump(brain, redis_url, sql_url) as pump:
        handle = pump.client.handle(parked[1])
        assert pump.client.approve(handle.approvals()[0].id)
        assert [pump.finish(pump.client.handle(turn)).text for turn in (parked[1], queued[1])] == [
            *("asks: done", "waits: done")
        ]
    assert ran == ["write x", "note y"] * 2


def test_workers_of_the_old_server_refuse_and_name_the_new_one(
    ends: tuple[MovePlace, MovePlace], redis_url: str, tmp_path: Path
) -> None:
    ends[0].client.set("bq:x", "1")
    run(ends)
    found = check_redis(redis_url)
    assert (found.level, found.remedy) == ("FAIL", "set BRAINQ_REDIS_URL to redis://new/0")
    settings = load_settings(redis_url=redis_url, sql_url=sqlite_url(tmp_path))
    wiring = Wiring(settings, brain_of(ScriptedProvider(rules=replies)))
    with pytest.raises(Unreachable, match="its data has moved to redis://new/0; set its URL to redis://new/0"):
        wiring.warm_up()
    with pytest.raises(redis.ResponseError, match="WRONGTYPE"):
        wiring.state.sweeper.epoch()  # so nobody queues there what SQL has
    wiring.close()
    assert ends[0].client.ttl("bq:epoch") == -1, "it stays closed, whoever looks"


def test_every_type_arrives_with_its_lifetime(ends: tuple[MovePlace, MovePlace]) -> None:
    client = ends[0].client
    client.set("bq:string", "a", px=3_600_000)
    client.set("bq:empty", "")
    client.rpush("bq:list", *range(25_000))
    client.sadd("bq:set", "a", "b")
    client.zadd("bq:zset", {"a": 0.1, "b": float("inf"), "c": -1e-300})
    client.hset("bq:{s}:t:t1", mapping={"line": "bq:{money}:line:all/day", "last": "bq:{money}:line:"})
    for number in (1, 2, 3):
        client.xadd("bq:stream", {"kind": "a", "at": number}, id=f"{number}-0")
        client.xadd("bq:trimmed", {"kind": "a"}, id=f"{number}-0")
    client.xdel("bq:stream", "2-0")
    client.xtrim("bq:trimmed", maxlen=0, approximate=False)
    moved = names(ends[0])
    before = read_keys(ends[0].space.client, [name.encode() for name in moved])
    assert run(ends) == {"copying": 8, "comparing": 8, "cleaning": 8}
    assert names(ends[0]) == ["bq:epoch"]
    after = read_keys(ends[1].space.client, [(NEW + name.removeprefix(OLD)).encode() for name in moved])
    turn = moved.index("bq:{s}:t:t1")
    assert after.pop(turn) != before.pop(turn)
    assert after == before
    assert len(names(ends[1])) == len(moved), "nothing else is there"
    assert ends[1].client.hgetall(f"{NEW}{{s}}:t:t1") == {
        "line": f"{NEW}{{money}}:line:all/day",  # a key that scripts read from this field
        "last": "bq:{money}:line:",
    }
    ends[1].client.xadd(f"{NEW}trimmed", {"kind": "b"}, id="4-0")
    with pytest.raises(redis.ResponseError, match="equal or smaller"):
        ends[1].client.xadd(f"{NEW}trimmed", {"kind": "b"}, id="3-0")


def test_keys_that_are_the_same_are_not_written_again(ends: tuple[MovePlace, MovePlace]) -> None:
    spaces = [place.space for place in ends]
    ends[0].client.set("bq:x", 1)
    assert copy_keys(spaces[0], spaces[1], [b"bq:x", b"bq:none"]) == (1, 1)
    assert copy_keys(spaces[0], spaces[1], [b"bq:x", b"bq:none"]) == (1, 0)
    ends[0].client.delete("bq:x")
    assert copy_keys(spaces[0], spaces[1], [b"bq:x"]) == (0, 1)
    assert names(ends[1]) == []


def worker_runs(place: MovePlace) -> None:
    RedisWorkers(place.client, place.keys).announce(
        "serial@p1", FleetWorker(name="serial@p1", pool="serial", busy=0, threads=1), 60
    )


def process_listens(place: MovePlace) -> object:
    listener = place.client.pubsub()
    listener.subscribe("bq:alive:frozen")
    assert listener.get_message(timeout=10)
    return listener  # it listens as long as somebody has it


def turn_is_held(place: MovePlace) -> None:
    place.client.hset("bq:{s}:t:t7", mapping={"owner": "w1", "lease_until": place.time_ms() + 60_000})
    place.client.zadd("bq:index", {"s t7": 1})


def step_is_held(place: MovePlace) -> None:
    place.client.hset("bq:{s}:t:t7", mapping={"fin_owner": "w1", "fin_lease": place.time_ms() + 60_000})
    place.client.zadd("bq:index", {"s t7": 1})


def lane_is_held(place: MovePlace) -> None:
    place.client.zadd("bq:{lanes}:leases", {"s t7 c1-0": place.time_ms() + 60_000})


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (worker_runs, "serial@p1 still run; stop all workers"),
        (process_listens, "frozen still run"),
        (turn_is_held, "still hold turn t7; wait"),
        (step_is_held, "still hold turn t7; wait"),
        (lane_is_held, "still hold the lanes of s t7 c1-0"),
    ],
)
def test_it_is_refused_while_somebody_works(ends: tuple[MovePlace, MovePlace], happens: Any, said: str) -> None:
    kept = happens(ends[0])
    before = names(ends[0])
    with pytest.raises(MoveFailed, match=said):
        run(ends)
    assert names(ends[0]) == before
    assert names(ends[1]) == []
    if kept is not None:
        kept.close()


def test_a_worker_that_begins_during_the_copy_is_noticed(ends: tuple[MovePlace, MovePlace]) -> None:
    ends[0].client.set("bq:x", "1")
    steps = ServerMove(*ends).run()
    next(steps)
    worker_runs(ends[0])
    with pytest.raises(MoveFailed, match=r"serial@p1 still run"):
        list(steps)
    assert ends[0].mark() == {}, "it works there as before"
    ends[0].client.delete("bq:worker:serial@p1")
    run(ends)
    assert names(ends[1]) == [f"{NEW}x"]


def test_messages_of_producers_without_a_prefix_are_not_left_behind(ends: tuple[MovePlace, MovePlace]) -> None:
    ends[0].client.rpush("brainq.turns", "message")
    with pytest.raises(MoveFailed, match=r"1 messages wait in 'brainq.turns'"):
        run(ends, foreign=["brainq.turns"])


def test_clocks_that_differ_are_refused(ends: tuple[MovePlace, MovePlace], monkeypatch: pytest.MonkeyPatch) -> None:
    now = ends[1].time_ms() + 5000
    monkeypatch.setattr(ends[1], "time_ms", lambda: now)
    with pytest.raises(MoveFailed, match=r"differs by \+\d+\.\d s, and deadlines would move"):
        run(ends)


def test_a_server_with_other_keys_is_refused(ends: tuple[MovePlace, MovePlace]) -> None:
    ends[1].client.set(f"{NEW}of-another", "1")
    with pytest.raises(MoveFailed, match=r"has keys under '\{other\}:' \(\{other\}:of-another\); use an empty Redis"):
        run(ends)


def test_it_goes_on_after_an_interruption_and_copies_what_changed_meanwhile(ends: tuple[MovePlace, MovePlace]) -> None:
    for number in range(server_move.AT_ONCE + 1):
        ends[0].client.set(f"bq:{number}", "1")
    steps = ServerMove(*ends).run()
    next(steps)
    steps.close()  # Ctrl+C
    assert ends[0].mark() == {}
    assert ends[1].mark()["state"] == "arriving"
    with pytest.raises(MoveFailed, match="has a part of redis://old/0"):
        run(ends[::-1])
    ends[0].client.set("bq:0", "2")
    ends[0].client.delete("bq:1")
    run(ends)
    assert ends[1].client.get(f"{NEW}0") == "2"
    assert len(names(ends[1])) == server_move.AT_ONCE
    assert ends[1].mark() == {}


def test_a_killed_command_keeps_the_old_server_closed_for_a_minute(ends: tuple[MovePlace, MovePlace]) -> None:
    steps = ServerMove(*ends).run()
    ends[0].client.set("bq:x", "1")
    next(steps)
    with pytest.raises(MoveFailed, match="is being moved to redis://new/0; if that command was killed, run this one"):
        run(ends)
    assert 0 < ends[0].client.pttl("bq:epoch") <= server_move.HELD_MS
    ends[0].client.delete("bq:epoch")  # the minute is over
    with pytest.raises(MoveFailed, match="was closed for 60 s without progress"):
        list(steps)


def test_what_was_decided_is_finished_by_the_next_run(
    ends: tuple[MovePlace, MovePlace], monkeypatch: pytest.MonkeyPatch
) -> None:
    ends[0].client.set("bq:x", "1")
    with monkeypatch.context() as patched:
        patched.setattr(MovePlace, "open", lambda _: 1 / 0)  # pyright: ignore[reportUnknownLambdaType]
        with pytest.raises(ZeroDivisionError):
            run(ends)
    assert ends[0].mark()["state"] == "moved"
    ends[0].client.set("bq:late", "of a producer that knows only the old one")
    assert run(ends) == {"cleaning": 2}
    assert names(ends[0]) == ["bq:epoch"]
    assert (names(ends[1]), ends[1].mark()) == ([f"{NEW}x"], {})
    assert run(ends) == {}
    third = MovePlace("redis://nowhere:1/0", "redis://third/0", "bq3:")
    with pytest.raises(MoveFailed, match="has moved to redis://new/0; move it from there"):
        run((ends[0], third))
    third.close()


def test_keys_that_change_all_the_time_are_not_moved(ends: tuple[MovePlace, MovePlace]) -> None:
    ends[0].client.set("bq:x", "0")
    steps = (ends[0].client.incr("bq:x") for _ in ServerMove(*ends).run())
    with pytest.raises(MoveFailed, match="change all the time"):
        list(steps)
    assert ends[0].mark() == {}


def test_a_command_reports_what_it_refuses(
    redis_url: str, tmp_path: Path, brainq: Brainq, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BRAINQ_SQL_URL", sqlite_url(tmp_path))
    monkeypatch.setenv("BRAINQ_REDIS_URL", redis_url)
    with make_client(redis_url) as client:
        RedisWorkers(client, Keys(OLD)).announce(
            "serial@p1", FleetWorker(name="serial@p1", pool="serial", busy=0, threads=1), 60
        )
    refused = brainq("redis", "move", "--to", redis_url)
    assert (refused.code, "is in use: serial@p1 still run" in refused.err) == (ExitCode.REFUSED, True)
    wrong = brainq("redis", "move", "--to", "http://x")
    assert (wrong.code, "must begin with one of redis://" in wrong.err) == (ExitCode.USAGE, True)
