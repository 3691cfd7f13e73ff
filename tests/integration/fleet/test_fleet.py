"""What runs turns, at one moment: told without asking a worker."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from brainq import AsyncClient, Client, Fleet, InvalidInput, Operator, SetupError
from brainq.adapters.celery.celery57.thread_pool import TaskThreads
from brainq.adapters.celery.envelope import envelope
from brainq.adapters.celery.names import TURNS_QUEUE, queue_key
from brainq.adapters.redis.fleet import rung_at_s
from brainq.cli.doctor.fleet import check_troubles, compare_names
from brainq.cli.pages.fleet import print_fleet
from brainq.contracts.build import Ramp
from brainq.contracts.fleet import FleetWorker
from brainq.fleet.metrics import read_gauges
from brainq.runtime.observe.metrics.catalogue import TROUBLES
from brainq.runtime.processes.pool_threads import POOL_THREADS
from brainq.workers.tasks.announcer import WorkerAnnouncer
from tests.integration.records.test_lists import shop
from tests.support.builds import announce
from tests.support.pump import Pump
from tests.support.wait import wait_until


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(shop())


def depths(fleet: Fleet) -> dict[str, int]:
    return {queue.name: queue.depth for queue in fleet.queues if queue.depth}


def test_turns_queues_and_lanes_are_counted(pump: Pump) -> None:
    empty = pump.client.fleet()
    assert (depths(empty), empty.turns.active, empty.lanes.held) == ({}, 0, 0)
    assert [pool.name for pool in empty.pools] == ["coordinator", "parallel", "serial", "finalizer"]
    assert empty.redis.used_bytes > 0
    assert empty.redis.version

    parked = pump.submit("s1", "save")
    pump.drain()
    pump.submit("s1", "hello")
    approved = pump.submit("s2", "save")
    pump.drain()
    pump.client.approve(approved.approvals()[0].id)
    pump.submit("s3", "hello")
    seen = pump.client.fleet()
    turns = seen.turns
    assert (turns.parked, turns.queued, turns.active, turns.closing, turns.accepted) == (1, 1, 2, 0, 0)
    assert (turns.is_whole, turns.approvals) == (True, 1)
    assert depths(seen) == {"brainq.turns": 1, "brainq.tools.local_write": 1}
    assert {queue.oldest_age_s is not None for queue in seen.queues if queue.depth} == {True}
    assert max(queue.oldest_age_s or 0 for queue in seen.queues) < 60
    assert (seen.lanes.held, seen.lanes.waiting) == (1, 0)
    assert parked.turn_id in {turn.turn_id for turn in pump.client.turns(state="parked")}


def let_bells_be_old(pump: Pump, queue: str) -> None:
    """As if the doorbells of a queue had been rung a minute ago."""
    client: Any = pump.wiring.state.redis
    key = queue_key(pump.settings, queue)
    for at, bell in enumerate(client.lrange(key, 0, -1)):
        message = json.loads(bell)
        message["properties"]["delivery_tag"] = f"1.{pump.wiring.state.events.now_ms() // 1000 - 60}000000"
        client.lset(key, at, json.dumps(message))


def test_workers_that_idle_beside_an_old_queue_are_troubles_wherever_a_person_looks(
    pump: Pump, capsys: pytest.CaptureFixture[str]
) -> None:
    handle = pump.submit("s1", "hello")
    assert [trouble.kind for trouble in pump.client.fleet().troubles] == []
    let_bells_be_old(pump, TURNS_QUEUE)
    assert [trouble.kind for trouble in pump.client.fleet().troubles] == ["unserved_queue"]
    announce(pump.wiring, "1.4", "d01d", threads=100)
    (found,) = pump.client.fleet().troubles
    assert (found.kind, found.subject) == ("idle_queue", TURNS_QUEUE)
    assert "although coordinator@1.4 is idle, so it does not consume" in found.text
    console = Console(width=200)
    print_fleet(console, pump.client.fleet())
    assert "although coordinator@1.4 is idle" in capsys.readouterr().out
    with Operator(pump.settings) as operator:
        facts = operator.facts(handle.turn_id)
    assert facts.troubles == (found,)
    assert facts.as_json()["troubles"][0]["kind"] == "idle_queue"
    (gauge,) = [series for series in read_gauges(pump.wiring) if series.metric is TROUBLES]
    assert (gauge.values[("idle_queue",)], gauge.values[("late_sweep",)]) == (1, 0)
    assert [check.level for check in check_troubles(pump.settings)] == ["warn"]
    pump.finish(handle)
    assert pump.client.fleet().troubles == ()
    assert [check.level for check in check_troubles(pump.settings)] == ["ok"]


def test_a_process_that_is_connected_and_does_not_say_that_it_works_is_a_trouble(pump: Pump) -> None:
    announce(pump.wiring, "1.4", "d01d")
    client: Any = pump.wiring.state.redis
    presence = pump.wiring.state.keys.presence
    client.hset(presence, mapping={"1.4": "abc 0", "silent-1": "abc 0", "gone-2": "abc 17", " looked_at": "5"})
    assert [trouble.subject for trouble in pump.client.fleet().troubles] == ["silent-1"]
    client.delete(presence)


def test_names_of_workers_are_compared_with_those_that_answer() -> None:
    found = [check.said for check in compare_names({"serial@a", "parallel@a"}, {"serial@a", "finalizer@a"})]
    assert [said.split(" ")[0] for said in found] == ["parallel@a", "finalizer@a"]
    assert list(compare_names({"serial@a"}, {"serial@a"})) == []


def test_builds_of_long_ago_are_known_no_more(pump: Pump) -> None:
    """Each of them is seven queues of every look at the fleet."""
    state = pump.wiring.state
    for build in ("1.3", "1.4", "1.5"):
        announce(pump.wiring, build, f"d-{build}")
    redis, keys = state.builds.client, state.keys
    redis.many([("ZADD", keys.builds_seen, 1, "1.3"), ("ZREM", keys.builds_seen, "1.4")])  # 1.4 does not say when
    state.builds.set_ramp(Ramp("1.5", "1.4", 100))
    redis.many([("PEXPIRE", keys.ramp, 60_000), ("PERSIST", keys.builds_seen)])

    assert [state.builds.forget_old(), state.builds.forget_old()] == [1, 0]
    assert redis.many([("PTTL", keys.builds_seen)])[0] > 0
    announce(pump.wiring, "1.5", "d-1.5")
    assert sorted(state.builds.known()) == ["1.4", "1.5"]
    seen, (left_ms,) = redis.many([("ZRANGE", keys.builds_seen, 0, -1)])[0], redis.many([("PTTL", keys.ramp)])
    assert (sorted(seen), left_ms > 60_000) == (["1.4", "1.5"], True)  # who reports keeps the ramp


def test_each_build_has_its_queues_and_its_number_of_workers(pump: Pump) -> None:
    state = pump.wiring.state
    for build, digest, busy in (("1.4", "d01d", 1), ("1.5", "0e00", 0)):
        announce(pump.wiring, build, digest, "serial", busy=busy)
    for _ in range(2):
        state.redis.lpush(f"{pump.settings.prefix}brainq.tools.network@1.5", "{}")
    fleet = pump.client.fleet()
    assert depths(fleet) == {"brainq.tools.network@1.5": 2}
    assert [(queue.pool, queue.build) for queue in fleet.queues if queue.depth] == [("serial", "1.5")]
    (serial,) = pump.client.scale("serial", least=0).pools
    assert (serial.wanted, serial.queued, serial.running) == (3, 2, 1)
    assert [(each.build, each.wanted, each.workers) for each in serial.builds] == [("1.4", 1, 1), ("1.5", 2, 1)]
    assert pump.client.scale("serial", least=0, build="1.5").wanted == 2
    pinned = pump.submit("s1", "hello")
    key = state.keys.turn("s1", pinned.turn_id)
    state.redis.hset(key, mapping={"pin": "d01d", "pin_build": "1.4", "state": "parked"})
    scales = pump.client.scale(least=0, build="1.4").pools
    assert [each.wanted for each in scales] == [1, 1, 1, 1], "a parked turn may go on at any time"
    assert pump.client.scale("serial", least=0, build="1.6").wanted == 0


def test_a_lane_that_is_waited_for_and_one_whose_worker_is_gone(pump: Pump) -> None:
    state = pump.wiring.state
    state.redis.hset(state.keys.lane_holders, mapping={"s1 t1 c1-0": '["a"]', "s2 t2 c1-0": '["a"]'})
    state.redis.zadd(state.keys.lane_leases, {"s1 t1 c1-0": 1})
    lanes = pump.client.fleet().lanes
    assert (lanes.held, lanes.waiting, lanes.lapsed) == (1, 1, 1)


def test_what_was_given_up_is_counted(pump: Pump) -> None:
    store = pump.wiring.store
    store.steps.note_failure("turn-1", "memory", "broken", 5, dead=True)
    store.steps.note_failure("turn-1", "learner", "broken", 1, dead=False)
    pump.wiring.state.redis.lpush(f"{pump.settings.prefix}brainq.poison", "what nobody could read")
    given_up = pump.client.fleet().given_up
    assert (given_up.finalizer_steps, given_up.judgements, given_up.deliveries) == (1, 0, 0)
    assert given_up.quarantined == 1


def test_the_sweepers_rounds_are_told(pump: Pump) -> None:
    assert pump.client.fleet().sweeper.last_round_s is None
    pump.sweep()
    assert (pump.client.fleet().sweeper.last_round_s or 0.0) < 60


def test_a_worker_is_alive_as_long_as_it_says_so(pump: Pump) -> None:
    workers, threads, goes_on = pump.wiring.state.workers, TaskThreads(4), threading.Event()
    threads.start(goes_on.wait)
    announcer = WorkerAnnouncer(["serial"], lambda: "host-1", lambda: workers)
    dead = FleetWorker(name="serial@dead", pool="serial", threads=1, busy=0)
    workers.announce("serial@dead-1", dead, for_s=0.001)
    wait_until(lambda: workers.alive() == (), "its word is over")
    try:
        assert workers.alive() == ()  # it does not consume yet
        announcer.begin(SimpleNamespace(hostname="serial2@host", pool=SimpleNamespace(limit=4, busy=threads.busy)))
        wait_until(lambda: workers.alive(), "it says that it is alive")
        (serial,) = [pool for pool in pump.client.fleet().pools if pool.name == "serial"]
        assert serial.workers == (FleetWorker(name="serial2@host", pool="serial", threads=4, busy=1),)
        assert (serial.threads, serial.busy) == (4, 1)
        assert workers.draining() == ()
        announcer.drain()
        wait_until(workers.draining, "it says that it drains")
        assert (workers.alive(), [each.busy for each in workers.draining()]) == ((), [1])
        assert pump.wiring.state.redis.smembers(pump.wiring.state.keys.workers) == {"serial@host-1"}
    finally:
        announcer.end()
        goes_on.set()
        threads.close()
        threads.join()
    assert (workers.alive(), workers.draining()) == ((), ())
    assert not pump.wiring.state.redis.exists(pump.wiring.state.keys.workers)


def test_a_worker_of_several_pools_is_in_each_with_the_threads_of_each(pump: Pump) -> None:
    workers = pump.wiring.state.workers
    POOL_THREADS.serve({"coordinator": 3, "serial": 2})
    assert POOL_THREADS.try_take("serial")
    announcer = WorkerAnnouncer(["coordinator", "serial"], lambda: "host-1", lambda: workers)
    try:
        announcer.begin(SimpleNamespace(hostname="both@host", pool=SimpleNamespace(limit=5, busy=1)))
        wait_until(lambda: len(workers.alive()) == 2, "both are announced")
        seen = {pool.name: (pool.threads, pool.busy) for pool in pump.client.fleet().pools}
        assert seen == {"coordinator": (3, 0), "parallel": (0, 0), "serial": (2, 1), "finalizer": (0, 0)}
    finally:
        announcer.end()
        POOL_THREADS.serve({})
    assert workers.alive() == ()


@pytest.mark.parametrize(
    ("bell", "at"),
    [
        (None, None),
        ("no JSON", None),
        ("[1]", None),
        ('{"properties": {"delivery_tag": "t1.advance.0.1700000000123456"}}', 1_700_000_000),
        ('{"properties": {"delivery_tag": "0c5b2f6e-1d7e-4a39-8a5d-8f2c9f2b7d11"}}', None),
        (envelope("brainq.turn.advance", ("s1", "t1", 0), "t1.advance.0", "brainq.turns", "t1"), None),
    ],
)
def test_a_doorbell_says_when_it_was_rung_or_nothing(bell: str | None, at: int | None) -> None:
    assert rung_at_s(bell) == at


def test_the_same_on_an_event_loop(pump: Pump) -> None:
    async def ask() -> Fleet:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            return await client.fleet()

    assert [pool.name for pool in asyncio.run(ask()).pools] == [pool.name for pool in pump.client.fleet().pools]


def test_the_workers_that_each_pool_wants(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop(), scale_min=0, concurrency={"coordinator": 2, "serial": 1})
    idle = pump.client.scale()
    assert [(each.pool, each.wanted) for each in idle.pools] == [
        (name, 0) for name in ("coordinator", "parallel", "serial", "finalizer")
    ]
    saves = [pump.submit(f"s{number}", "save") for number in range(3)]
    pump.drain()
    for save in saves:
        pump.client.approve(save.approvals()[0].id)
    pump.drain("brainq.turns")
    serial = pump.client.scale("serial")
    assert [each.pool for each in serial.pools] == ["serial"]
    assert (serial.wanted, serial.pools[0].queued, serial.pools[0].workers) == (3, 3, 0)
    assert serial.pools[0].oldest_age_s is not None
    assert pump.client.scale("serial", most=2).wanted == 2
    workers = pump.wiring.state.workers
    for name, busy in (("b", 1), ("a", 0)):
        workers.announce(f"{name}-1", FleetWorker(name=f"serial@{name}", pool="serial", threads=1, busy=busy), 60)
    workers.announce("c-1", FleetWorker(name="serial@c", pool="serial", threads=1, busy=1), 60, draining=True)
    (now,) = pump.client.scale("serial").pools
    assert (now.wanted, now.workers, now.draining, now.running) == (4, 2, 1, 1)
    assert [each.name for each in now.stop_first] == ["serial@c", "serial@a", "serial@b"]
    with pytest.raises(InvalidInput, match="is not one of coordinator"):
        pump.client.scale("writers")


def test_coordinators_are_wanted_for_turns_that_wait_for_capacity(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop(), scale_min=0, concurrency={"coordinator": 2})
    pump.sweep_part("publish the capacity")
    room = pump.client.fleet().room.size
    assert room is not None
    for number in range(room + 4):
        pump.submit(f"s{number}", "hello")
    waiting = pump.wiring.state.fleet.waiting_turns()
    assert waiting >= 4
    assert pump.client.fleet().room.live + waiting == room + 4
    (found,) = pump.client.scale("coordinator", most=1_000).pools
    assert found.load == -(-(room + 4) * 4 // 5)
    assert found.wanted == -(-found.load // 2)
    fixed = pumps(shop(), scale_min=0, concurrency={"coordinator": 2}, max_live_turns=room)
    (found,) = fixed.client.scale("coordinator", most=1_000).pools
    assert found.load == found.queued, "more coordinators would make no room"
    many = FleetWorker(name="coordinator@a", pool="coordinator", threads=2 * room, busy=0)
    pump.wiring.state.workers.announce("a-1", many, 60)
    (found,) = pump.client.scale("coordinator").pools
    assert found.load == found.queued, "the capacity is not theirs to raise"


def test_a_broker_elsewhere_says_itself_how_much_lies_in_it(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop())
    elsewhere = {"broker_url": pump.settings.redis_url, "doorbell": "outbox"}
    with (
        Client(pump.settings.model_copy(update=elsewhere), shop()) as client,
        pytest.raises(SetupError, match="BRAINQ_BROKER_URL"),
    ):
        client.scale()
