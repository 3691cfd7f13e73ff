"""Limits of models' services, kept by the fleet: the adapter, and whole turns that wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import cast

import pytest

from brainq import Brain, ScriptedProvider
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.adapters.redis.connection import Client, make_client
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.rates import RedisRates
from brainq.adapters.redis.scripts import Scripts
from brainq.app.wiring import doorbells
from brainq.contracts.event import EventKind
from brainq.contracts.rate import RateReport, RateRules, parse_rates
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import LimitsFields
from brainq.engine.models.asking.rate_permit import GIVE_UP_EARLY_S
from brainq.engine.models.scripted import says
from brainq.runtime.settings.deployment import Settings
from tests.integration.engine.models.test_wire import openai_words
from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.support.pump import Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]
NAME = "openai:m"


@pytest.fixture
def wire() -> Iterator[WireServer]:
    with WireServer() as made:
        yield made


def limits(client: Client, rates: RateRules) -> RedisRates:
    settings = Settings()
    keys = Keys(settings.prefix)
    return RedisRates(Scripts(client, keys, doorbells(settings)), rates)


def test_what_one_process_learns_all_hear(pumps: Pumps) -> None:
    first, second = pumps(owner="a").wiring.state.rates, pumps(owner="b").wiring.state.rates
    assert not second.is_limited(NAME)  # from here on it listens
    first.settle(NAME, "p0", 5, 0.0, RateReport(requests=60))
    wait_until(lambda: second.is_limited(NAME), "it has heard")
    late = pumps(owner="c").wiring.state.rates
    assert not late.is_limited("openai:other")
    wait_until(lambda: late.is_limited(NAME), "one that begins to listen later reads it")
    assert [(model.name, model.requests) for model in late.models()] == [(NAME, 60)]


def test_what_workers_were_given_is_seen_by_who_was_given_nothing(redis_url: str) -> None:
    with closing(make_client(redis_url)) as client:
        worker, shell = (limits(client, parse_rates(f"{NAME}=60/min,9000 tokens/min")), limits(client, RateRules()))
        assert worker.take(NAME, "p0", "acme:1 t1 1 step", 10, 5.0) is None
        (seen,) = shell.models()
        assert (seen.name, seen.requests, seen.tokens, seen.taken) == (NAME, 60, 9000, 1)
        shell.settle(NAME, "p1", 5, 0.0, RateReport(requests=50))
        assert [model.requests for model in shell.models()] == [50]


def test_what_every_answer_repeats_is_written_once(redis_url: str) -> None:
    with closing(make_client(redis_url)) as client:
        mine = limits(client, RateRules())
        key = Keys(Settings().prefix).rate(NAME, "rule")
        mine.settle(NAME, "p0", 5, 0.0, RateReport(requests=60))
        assert client.hget(key, "said") == "p0"
        mine.settle(NAME, "p1", 5, 0.0, RateReport(requests=60))
        assert client.hget(key, "said") == "p0"
        mine.settle(NAME, "p2", 5, 0.0, RateReport(requests=70))
        assert client.hget(key, "said") == "p2"


def test_a_model_that_is_held_to_no_limit_learns_none(redis_url: str) -> None:
    with closing(make_client(redis_url)) as client:
        mine = limits(client, parse_rates(f"{NAME}=none"))
        assert not mine.settle(NAME, "p0", 5, 0.0, RateReport(requests=1, stop_s=20.0))
        assert not mine.is_limited(NAME)
        assert client.keys("*") == []


def too_many(exchange: Exchange) -> None:
    exchange.send_json(429, {"error": {"message": "slow down"}}, retry_after="8")


def test_a_429_stops_the_fleet_and_no_thread_waits_with_the_turns(pumps: Pumps, wire: WireServer) -> None:
    wire.answers = [too_many]
    wire.otherwise = lambda exchange: openai_words(exchange, "hello")
    models = [OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k") for _ in range(2)]
    one, other = (pumps(Brain("shop", model=model), owner=name) for name, model in zip("ab", models, strict=True))
    assert not other.wiring.state.rates.is_limited("anything")
    first = one.submit("s1", "hi")
    bell = one.take()
    assert bell is not None
    stopped_at = time.monotonic()
    assert one.answer(bell).startswith("waits for openai:openai: its service asked to wait")
    name = one.wiring.state.rates.models()[0]
    assert name.stopped_s > 0
    wait_until(lambda: other.wiring.state.rates.is_limited(f"{name.name} #{name.account}"), "the other has heard")
    second = other.submit("s2", "hi")
    bell = other.take()
    assert bell is not None
    assert other.answer(bell).startswith("waits for ")
    assert len(wire.bodies) == 1
    snapshot = second.snapshot()
    assert snapshot is not None
    assert (snapshot.owner, snapshot.waits_for) == ("", "openai:openai: its service asked to wait")
    assert one.wiring.state.rates.models()[0].waiting == 2

    def both_ended() -> bool:
        for pump in (one, other):
            pump.wiring.sweeper.sweep()
            while (bell := pump.take()) is not None:
                pump.answer(bell)
        return all(turn.snapshot().ending for turn in (first, second))  # type: ignore[union-attr]

    wait_until(both_ended, "both turns have ended")
    assert time.monotonic() - stopped_at > 5.0
    for turn in (first, second):
        assert turn.result(timeout_s=10).ending is Ending.COMPLETED
        told = [event.data for event in turn.events() if event.kind is EventKind.NOTICE]
        assert [data["waits_for"] for data in told] == ["openai:openai: its service asked to wait"]
        spends = turn.result(timeout_s=10).spends
        assert [spend.kind for spend in spends] == ["step"]
    assert len(wire.bodies) == 3
    for model in models:
        model.close()


def test_a_limit_is_learned_from_what_a_service_says_with_each_reply(pumps: Pumps, wire: WireServer) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.send_json(
            200,
            {"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 7}},
            x_ratelimit_limit_requests="500",
            x_ratelimit_remaining_requests="499",
            x_ratelimit_reset_requests="120ms",
        )

    wire.otherwise = answer
    with closing(OpenAIProvider(base_url=f"{wire.url}/v1", api_key="k")) as model:
        pump = pumps(Brain("shop", model=model))
        pump.submit("s1", "hi")
        pump.drain()
        (learned,) = pump.wiring.state.rates.models()
        assert (learned.name, learned.requests, learned.taken) == ("openai:openai", 500, 0)
        pump.submit("s2", "hi")
        pump.drain()
        assert pump.wiring.state.rates.models()[0].taken == 1  # the first was asked before anything was known


def test_without_limits_nothing_is_kept(pumps: Pumps) -> None:
    pump = pumps(Brain("shop", model=ScriptedProvider([says("hi")])))
    turn = pump.submit("s1", "hi")
    pump.drain()
    assert turn.result(timeout_s=10).ending is Ending.COMPLETED
    kept = cast("list[str]", pump.wiring.state.redis.keys("*"))
    assert [key for key in kept if "rate:" in key or key.endswith("limited")] == []


def test_a_cancelled_turn_leaves_the_line_and_one_that_may_not_wait_ends_unbegun(pumps: Pumps) -> None:
    model = ScriptedProvider([says("hi")] * 3)
    pump = pumps(Brain("shop", model=model), rates="scripted:*=1/min", lease_s=60.0)
    # The second waits for longer than its time. The third has too little left to stand in line, however late it asks.
    brief: LimitsFields = {"timeout_s": 30.0, "max_wait_s": GIVE_UP_EARLY_S}
    first, second = (pump.submit(f"acme:{i}", "hi", limits={"timeout_s": 30.0}) for i in range(2))
    third = pump.submit("acme:3", "hi", limits=brief)
    pump.drain()
    assert first.result(timeout_s=10).ending is Ending.COMPLETED
    late = third.result(timeout_s=10)
    assert (late.ending, late.stop_reason) == (Ending.TIMED_OUT, StopReason.WAITED)
    assert pump.wiring.state.rates.models()[0].waiting == 1
    snapshot = second.snapshot()
    assert snapshot is not None
    assert snapshot.waits_for == "scripted:scripted: 1 requests a minute"
    second.cancel()
    pump.drain()
    assert second.result(timeout_s=10).ending is Ending.CANCELLED
    assert pump.wiring.state.rates.models()[0].waiting == 0
    assert pump.wiring.state.rates.models()[0].taken == 1
