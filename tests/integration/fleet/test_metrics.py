"""What is counted of real turns: each fact once, whatever is told twice, lost or killed; and what is read beside it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from brainq import Brain, Client, Effect
from brainq.app.devserver.ports import free_port
from brainq.client.connection import cells_of
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.model import ModelReply
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.fleet.all_cells import serve_metrics
from brainq.runtime.observe.metrics import catalogue as m
from brainq.runtime.observe.metrics.counters import Counters
from brainq.runtime.settings.deployment import load_settings
from brainq.workers.tasks.announcer import WorkerAnnouncer
from tests.integration.records.test_lists import shop
from tests.support.brains.diary import order
from tests.support.brains.obedient import script
from tests.support.counted import counted, read_by
from tests.support.pump import Pump
from tests.support.wait import wait_until

__all__ = ["counted"]


def put(step: int) -> ModelReply:
    return calls(("put_away", {})) if step == 1 else says("done")


def of(counters: Counters, name: str, *labels: str) -> float:
    """The sum of a metric's cells that begin with these labels; a histogram's count of values."""
    return sum(
        value
        for cell, value in counters.totals().items()
        if cell[: 1 + len(labels)] == (name, *labels) and cell[-1] != "sum"
    )


def test_a_turn_its_steps_calls_and_model_calls_are_counted_once(pump: Pump, counted: Counters) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"}), ("read", {"name": "b"})], [("write", {"name": "c"})]))
    pump.finish(handle)
    assert of(counted, "brainq_turns", "obedient", "completed", "answered") == 1
    assert of(counted, "brainq_steps", "obedient") == 3
    assert of(counted, "brainq_calls", "read", "read_only", "completed") == 2
    assert of(counted, "brainq_calls", "write", "local_write", "completed") == 1
    assert of(counted, "brainq_call_duration_seconds", "read") == 2
    assert of(counted, "brainq_call_queue_seconds", "local_write") == 1
    assert of(counted, "brainq_lane_wait_seconds", "local_write") == 1
    assert of(counted, "gen_ai_client_operation_duration_seconds", "chat", "scripted") == 3
    assert of(counted, "brainq_turn_duration_seconds", "obedient", "completed") == 1


def test_doorbells_that_come_twice_count_nothing_twice(pump: Pump, counted: Counters) -> None:
    handle = pump.submit("s1", script([("read", {"name": "a"})], [("write", {"name": "b"})]))
    pump.ring_each_step()
    twice = 0
    while bell := pump.take():
        pump.answer(bell)
        assert pump.answer(bell).startswith("dropped"), bell
        twice += 1
    assert twice > 8
    assert handle.result(timeout_s=1).text == "done"
    assert of(counted, "brainq_turns") == 1
    assert of(counted, "brainq_calls") == 2
    assert of(counted, "gen_ai_client_operation_duration_seconds") == 3


def test_a_finalizer_that_dies_after_it_has_recorded_the_turn_is_followed_by_one_that_does_not_count_it(
    pumps: Callable[..., Pump], counted: Counters
) -> None:
    pump, dead = pumps(lease_s=60.0), pumps(owner="dead", lease_s=60.0)
    pump.ring_each_step()
    handle = pump.submit("s1", script())
    while (bell := pump.take()) and bell.args[2:] != ("log",):
        pump.answer(bell)
    assert bell is not None
    claim = dead.wiring.state.finals.claim("s1", handle.turn_id, "log", "dead")
    assert isinstance(claim, FinalStepClaim)
    dead.wiring.finalizer.run_claimed(claim)  # and then it dies
    assert of(counted, "brainq_turns") == 1
    dead.wiring.state.redis.hset(dead.wiring.state.keys.turn("s1", handle.turn_id), "fin_lease", 0)
    pump.settle(handle)
    assert of(counted, "brainq_turns") == 1
    assert of(counted, "brainq_leases_lapsed", "finalizer_step") == 1


def test_what_is_not_there_any_more_is_counted_by_who_finds_it(pumps: Callable[..., Pump], counted: Counters) -> None:
    pump, dead = pumps(lease_s=60.0), pumps(owner="dead", lease_s=60.0)
    handle = pump.submit("s1", script([("read", {"name": "a"})]))
    lost_turn = dead.take("brainq.turns")
    assert lost_turn is not None
    session_id, turn_id, fence = lost_turn.args
    dead.wiring.state.turns.claim(session_id, turn_id, fence, "dead")
    key = dead.wiring.state.keys.turn("s1", handle.turn_id)
    dead.wiring.state.redis.hset(key, "lease_until", 0)
    pump.sweep()
    pump.drain("brainq.turns")
    assert of(counted, "brainq_leases_lapsed", "turn") == 1
    lost_call = dead.take("brainq.tools.read_only")
    assert lost_call is not None
    call, attempt = cast(Any, lost_call.args)[2:]
    ref = SimpleNamespace(session_id="s1", turn_id=handle.turn_id, call_id=call)
    dead.wiring.state.calls.claim(cast(Any, ref), attempt, "dead")
    dead.wiring.state.redis.hset(f"{key}:trace", f"{call}:lease", 0)
    pump.sweep()
    assert of(counted, "brainq_leases_lapsed", "call") == 1
    pump.finish(handle)
    pump.sweep()
    assert of(counted, "brainq_leases_lapsed") == 2


def test_steps_that_fail_and_limits_that_end_turns_are_counted(pump: Pump, counted: Counters) -> None:
    order("usage.raise", "2")
    reads = [[("read", {"name": str(number)})] for number in range(3)]
    pump.finish(pump.submit("s1", script(*reads), limits={"max_steps": 2}))
    assert of(counted, "brainq_finalizer_failures", "usage", "again") == 2
    assert of(counted, "brainq_budget_stops", "obedient", "max_steps") == 1
    pump.finish(pump.submit("s2", script(fail="server")))
    assert of(counted, "brainq_turns", "obedient", "failed", "model_error") == 1
    assert of(counted, "gen_ai_client_operation_duration_seconds", "chat", "scripted", "obedient", "server") in (0, 1)
    errors = {cell[4] for cell in counted.totals() if cell[0] == m.MODEL_CALLS.name}
    assert errors == {"", "server"}


def test_a_call_that_waited_for_its_lane_says_how_long(pumps: Callable[..., Pump], counted: Counters) -> None:
    brain = Brain("shelf", ScriptedProvider(rules=lambda request: put(request.step)))

    @brain.tool(effect=Effect.LOCAL_WRITE, resources=("shelf",))
    def put_away() -> str:  # pyright: ignore[reportUnusedFunction]
        "Put it away."
        return "done"

    pump = pumps(brain)
    first, second = pump.submit("s1", "x"), pump.submit("s2", "x")
    pump.drain("brainq.turns")
    trace = pump.wiring.state.calls.trace
    assert [trace(handle.session_id, handle.turn_id)[0].status for handle in (first, second)] == [
        "dispatched",
        "waiting",
    ]
    key = f"{pump.wiring.state.keys.turn('s2', second.turn_id)}:trace"
    waits_at = int(cast(str, pump.wiring.state.redis.hget(key, "c1-0:waits_at")))
    pump.wiring.state.redis.hset(key, "c1-0:waits_at", waits_at - 7_000)
    pump.finish(first)
    pump.finish(second)
    assert of(counted, "brainq_lane_wait_seconds", "local_write") == 2
    assert of(counted, "brainq_lane_wait_seconds", "local_write", "0.005") == 1
    assert 7 <= counted.totals()["brainq_lane_wait_seconds", "local_write", "sum"] < 600


def test_what_a_worker_counted_is_flushed_while_it_lives_and_when_it_ends(pump: Pump, counted: Counters) -> None:
    metrics = pump.wiring.state.metrics
    announcer = WorkerAnnouncer(
        ["serial"], lambda: "h-1", lambda: pump.wiring.state.workers, lambda: metrics.flush(counted)
    )
    counted.add(m.STEPS, "shop", by=2)
    announcer.begin(SimpleNamespace(hostname="serial@h", pool=SimpleNamespace(limit=1, busy=0)))
    try:
        wait_until(lambda: metrics.totals() == {("brainq_steps", "shop"): 2}, "it was flushed")
    finally:
        announcer.end()
    counted.add(m.STEPS, "shop")
    announcer.flush()
    assert metrics.totals() == {("brainq_steps", "shop"): 3}
    announcer.flush()
    assert metrics.totals() == {("brainq_steps", "shop"): 3}


def test_a_flush_whose_answer_was_lost_is_made_once(
    pump: Pump, counted: Counters, monkeypatch: pytest.MonkeyPatch
) -> None:
    metrics = pump.wiring.state.metrics
    counted.add(m.COST, "openai", "gpt", "step", by=0.1)
    with monkeypatch.context() as patch:

        def lost(batch: object) -> None:
            raise ConnectionError("the reply was lost")

        patch.setattr(counted, "mark_flushed", lost)
        with pytest.raises(ConnectionError):
            metrics.flush(counted)
    counted.add(m.COST, "openai", "gpt", "step", by=0.2)
    for _ in range(3):
        metrics.flush(counted)
    (cost,) = metrics.totals().values()
    assert cost == pytest.approx(0.3)


def test_the_text_tells_what_was_counted_and_how_things_are(pump: Pump, counted: Counters) -> None:
    pump.finish(pump.submit("s1", script([("read", {"name": "a"})])))
    pump.wiring.state.metrics.flush(counted)
    pump.submit("s2", script())
    pump.submit("s2", script())
    read = read_by(pump.client.metrics())
    assert read("brainq_up", service="redis") == read("brainq_up", service="sql") == 1
    assert read("brainq_turns_total", brain="obedient", ending="completed") == 1
    assert read("brainq_calls_total", tool="read", outcome="completed") == 1
    assert (read("brainq_open_turns", state="active"), read("brainq_open_turns", state="queued")) == (1, 1)
    assert read("brainq_queue_depth", queue="brainq.turns") == 1
    assert read("brainq_queue_depth", queue="brainq.tools.network") == 0
    assert read("brainq_queue_oldest_age_seconds", queue="brainq.tools.network") == 0
    assert read("brainq_workers", pool="serial") == 0
    assert (read("brainq_room_live"), read("brainq_tenants_waiting")) == (1, 0)
    assert read("brainq_open_turns_cut") == 0
    assert (read("brainq_open_turns_oldest_age_seconds", state="active") or 0) > 0
    assert (read("brainq_redis_memory_bytes") or 0) > 0


def test_what_is_parked_has_an_age(pumps: Callable[..., Pump], counted: Counters) -> None:
    pump = pumps(shop())
    pump.submit("s1", "save")
    pump.drain()
    key = next(iter(cast("list[str]", pump.wiring.state.redis.keys("*:t:*:budget")))).removesuffix(":budget")
    parked_at = int(cast(str, pump.wiring.state.redis.hget(key, "parked_at")))
    pump.wiring.state.redis.hset(key, "parked_at", parked_at - 60_000)
    read = read_by(pump.client.metrics())
    assert read("brainq_open_turns", state="parked") == 1
    assert read("brainq_approvals_pending") == 1
    assert 60 <= (read("brainq_open_turns_oldest_age_seconds", state="parked") or 0) < 600


def test_while_redis_is_away_the_text_says_so_and_tells_what_sql_does(pump: Pump) -> None:
    away = load_settings(
        **{**pump.settings.model_dump(exclude_unset=True), "redis_url": f"redis://127.0.0.1:{free_port()}/0"}
    )
    with Client(away, pump.wiring.brains) as client:
        read = read_by(client.metrics())
    assert (read("brainq_up", service="redis"), read("brainq_up", service="sql")) == (0, 1)
    assert read("brainq_given_up", what="finalizer_steps") == 0
    assert read("brainq_workers") is None


def test_while_sql_is_away_the_text_says_so_and_tells_what_redis_does(pump: Pump, counted: Counters) -> None:
    counted.add(m.STEPS, "shop", by=2)
    pump.wiring.state.metrics.flush(counted)
    sql_url = f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/none?connect_timeout=1"
    away = load_settings(**{**pump.settings.model_dump(exclude_unset=True), "sql_url": sql_url})
    with Client(away, pump.wiring.brains) as client:
        read = read_by(client.metrics())
    assert (read("brainq_up", service="redis"), read("brainq_up", service="sql")) == (1, 0)
    assert read("brainq_steps_total", brain="shop") == 2
    assert read("brainq_queue_depth", queue="brainq.turns") == 0
    assert read("brainq_open_turns") is None


def test_a_page_of_its_own_serves_them_where_there_is_no_gateway(pump: Pump) -> None:
    server, thread = serve_metrics(cells_of(pump.client), 0)
    try:
        assert server.server_address[0] == "127.0.0.1"
        with urlopen(f"http://127.0.0.1:{server.server_port}/metrics", timeout=30) as answer:
            assert answer.headers["content-type"].startswith("text/plain; version=")
            read = read_by(answer.read().decode())
        assert (read("brainq_up", service="redis"), read("brainq_up", service="sql")) == (1, 1)
        with urlopen(f"http://127.0.0.1:{server.server_port}/", timeout=30) as answer:
            assert '<a href="/metrics">' in answer.read().decode()
        for path in ("/metrics/", "/nothing"):
            with pytest.raises(HTTPError, match="404"):
                urlopen(f"http://127.0.0.1:{server.server_port}{path}", timeout=30)
    finally:
        server.shutdown()
        server.server_close()
        assert thread.stopping.wait(60)
