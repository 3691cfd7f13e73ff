"""A cell's keys on a real Redis Cluster of three primaries and three replicas: its primary is found and followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
import redis
from celery import Celery
from kombu.exceptions import OperationalError
from redis.crc import key_slot

from brainq.adapters.redis.connection import Client as RedisClient
from brainq.adapters.redis.connection import make_client
from brainq.adapters.redis.keys import Keys
from brainq.app.wiring import Wiring
from brainq.app.wiring.preflight import check_redis
from brainq.client.handle import TurnHandle
from brainq.contracts.ids import new_turn_id
from brainq.contracts.status import Ending
from brainq.errors import SetupError, Unreachable
from brainq.runtime.settings.deployment import load_settings
from tests.integration.adapters.celery.worker import listening_app, running, settings_for
from tests.support.brains import diary, obedient
from tests.support.brains.obedient import script
from tests.support.cluster import RedisCluster
from tests.support.failovers import fleet, follow_through, submit
from tests.support.pump import Pump, sqlite_url
from tests.support.wait import insist, wait_until

TAG = "bq"
SLOT = key_slot(TAG.encode())
KEY = f"{{{TAG}}}:x"
LOAD = 30


@pytest.fixture(autouse=True)
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The brain's tools write what they do in here."""
    monkeypatch.setenv(diary.DIRECTORY, str(tmp_path))


@pytest.fixture
def client(whole: RedisCluster) -> Iterator[RedisClient]:
    with make_client(f"{whole.url}?tag={TAG}") as made:
        yield made


def kill(cluster: RedisCluster) -> int:
    """Kill the primary of the keys. Returns its port, as the next two do."""
    return cluster.fail_over(SLOT)


def switch(cluster: RedisCluster) -> int:
    """Have a replica take the primary's place, as planned."""
    return cluster.switch(SLOT)


def move(cluster: RedisCluster) -> int:
    """Move the slot of the keys to another primary."""
    old = cluster.primary_port(SLOT)
    cluster.move(SLOT, next(port for port in cluster.primaries() if port != old))
    return old


def is_raised(client: RedisClient) -> bool:
    try:
        return bool(client.eval("return redis.call('SET', KEYS[1], 2)", 1, KEY))
    except redis.ConnectionError:
        return False


@pytest.mark.parametrize("change", [kill, switch, move])
def test_a_client_follows_its_slot(
    whole: RedisCluster, client: RedisClient, change: Callable[[RedisCluster], int]
) -> None:
    client.set(KEY, "1")
    assert client.wait(1, 30_000) >= 1, "a replica has it"
    old = change(whole)
    assert whole.primary_port(SLOT) != old, "the fault fired"
    wait_until(lambda: is_raised(client), "the client found the primary", 30)
    assert client.get(KEY) == "2"


def is_completed(pump: Pump, handle: TurnHandle) -> bool:
    """Each connection to the old primary fails once."""
    try:
        return pump.finish(handle).ending == Ending.COMPLETED
    except (redis.ConnectionError, Unreachable):
        return False


def test_a_turn_is_held_by_one_slot_and_its_scripts_are_loaded_wherever_that_goes(
    whole: RedisCluster, tmp_path: Path
) -> None:
    assert check_redis(whole.url + "?tag=bq", "{bq}:").level == "ok"
    with Pump(obedient.brain, whole.url, sqlite_url(tmp_path)) as pump:
        for name, change in (("s1", switch), ("s2", move), ("s3", switch)):
            handle = insist(partial(pump.submit, name, script([("write", {"name": name})]), turn_id=new_turn_id()))
            wait_until(partial(is_completed, pump, handle), "the turn is completed")
            change(whole)
        kept = {port: whole.ask(port, "KEYS", "*") for port in whole.primaries()}
    assert {key.partition("}")[0] for key in kept[whole.primary_port(SLOT)]} == {"{" + TAG}
    assert [port for port, keys in kept.items() if keys] == [whole.primary_port(SLOT)]


def pings(app: Celery) -> bool:
    try:
        return bool(app.control.ping(timeout=1))
    except (redis.RedisError, OperationalError):  # a connection of the pool was cut
        return False


def test_a_celery_worker_hears_doorbells_after_its_slot_went_elsewhere(whole: RedisCluster, tmp_path: Path) -> None:
    app, heard = listening_app(settings_for(whole.url))
    with Pump(obedient.brain, whole.url, sqlite_url(tmp_path)) as pump, running(app):
        pump.submit("s1", script())
        wait_until(lambda: len(heard.bells) == 1, "a worker takes the doorbell")
        for count, change in enumerate((switch, move, kill), 2):
            change(whole)

            def submitted(name: str = f"s{count}") -> bool:
                try:
                    pump.submit(name, script(), turn_id=new_turn_id())
                except Unreachable:
                    return False
                return True

            wait_until(submitted, "the client found the primary", 30)
            wait_until(lambda count=count: len(heard.bells) >= count, "and so did the worker", 60)
        wait_until(lambda: pings(app), "`celery inspect ping` is answered", 60)


def test_streams_are_followed_through_a_failover(whole: RedisCluster, client: RedisClient) -> None:
    url, keys = f"{whole.url}?tag={TAG}", Keys(f"{{{TAG}}}:")
    assert follow_through(partial(switch, whole), url, keys, client) == [1, 2, 3, 4, 5, 6]


def test_cells_of_one_cluster_are_apart(whole: RedisCluster, tmp_path: Path) -> None:
    for cell in "ab":
        url = f"{whole.url}?tag=bq.{cell}"
        (tmp_path / cell).mkdir()
        with Pump(obedient.brain, url, sqlite_url(tmp_path / cell)) as pump:
            assert pump.finish(pump.submit("s1", script())).ending == Ending.COMPLETED
    kept = [key for port in whole.primaries() for key in whole.ask(port, "KEYS", "*")]
    assert {key.partition("}")[0] for key in kept} == {"{bq.a", "{bq.b"}


def test_the_url_of_one_node_is_refused_with_the_url_to_use(whole: RedisCluster, tmp_path: Path) -> None:
    node = f"127.0.0.1:{whole.primary_port(SLOT)}"
    found = check_redis(f"redis://{node}/0")
    assert (found.level, found.remedy) == ("FAIL", f"set BRAINQ_REDIS_URL=redis+cluster://{node}/")
    wiring = Wiring(load_settings(redis_url=f"redis://{node}/0", sql_url=sqlite_url(tmp_path)), obedient.brain)
    with pytest.raises(SetupError, match=r"set BRAINQ_REDIS_URL=redis\+cluster://"):
        wiring.warm_up()
    wiring.close()


@pytest.mark.full
@pytest.mark.timeout(300)
def test_a_fleet_under_load_loses_and_doubles_nothing_while_its_slot_moves_and_fails_over(
    whole: RedisCluster, tmp_path: Path
) -> None:
    with fleet(whole.url, tmp_path) as client:
        handles: list[TurnHandle] = []
        for round_, change in enumerate((switch, move, switch)):
            handles += [submit(client, f"s{round_}-{number}") for number in range(LOAD)]
            wait_until(lambda: diary.notes("start", tool="write"), "writes run")
            change(whole)
        results = [insist(partial(handle.result, timeout_s=200)) for handle in handles]
    assert [(result.ending, result.text) for result in results] == [(Ending.COMPLETED, "done")] * 3 * LOAD
    written = [note["turn"] for note in diary.notes("start", tool="write")]
    assert len(written) == len(set(written)), "no write ran twice"
