"""Stops: which of several a turn, a model or a session meets, and what a process knows while nothing is stopped."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from brainq.adapters.redis import stops as module
from brainq.adapters.redis.stops import NONE_KNOWN_S, RedisStops
from brainq.contracts.stop import (
    Stop,
    StopMode,
    checked_stop,
    read_stops,
    stop_json,
    stop_of_model,
    stop_of_turn,
    stops_of_models,
)
from brainq.engine.people.stops import StopDesk

PAUSED = checked_stop("brain", "shop")
FORBIDDEN = checked_stop("tenant", "acme", mode="forbid")


def test_of_several_the_one_that_forbids_is_met_whatever_their_order() -> None:
    for order in ([PAUSED, FORBIDDEN], [FORBIDDEN, PAUSED]):
        assert stop_of_turn(order, "acme:1", "shop") is FORBIDDEN
    assert stop_of_turn([PAUSED, FORBIDDEN], "bolt:1", "shop") is PAUSED
    assert stop_of_turn([PAUSED, FORBIDDEN], "bolt:1", "lab") is None
    theirs = checked_stop("brain", "shop", "acme")
    assert [stop_of_turn([theirs], session, "shop") for session in ("acme:1", "bolt:1")] == [theirs, None]


def test_a_model_is_met_by_its_name_alone_or_with_its_provider() -> None:
    def model(name: str, tenant: str = "", mode: StopMode = "pause") -> Stop:
        return checked_stop("model", name, tenant, mode)

    paused, forbidden = model("gpt-5"), model("openai:gpt-5", mode="forbid")
    assert stop_of_model([paused, forbidden], "openai", "gpt-5") is forbidden
    assert stop_of_model([paused, forbidden], "azure", "gpt-5") is paused
    assert stop_of_model([paused, forbidden], "openai", "gpt-5-mini") is None
    theirs = model("gpt-5", "acme")
    assert stops_of_models([theirs, PAUSED, paused], "acme:1") == (theirs, paused)
    assert stops_of_models([theirs, PAUSED, paused], "bolt:1") == (paused,)


def test_what_a_claim_says_is_read_back() -> None:
    assert read_stops(json.dumps([f"pause 0 {stop_json(PAUSED)}", f"forbid 7 {stop_json(FORBIDDEN)}"])) == (
        PAUSED,
        FORBIDDEN,
    )


class Redis:
    """The hash of stops, and what happens while it is read."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self.reads = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def many(self, commands: Any) -> Any:
        self.reads += 1
        found = list(self.rows)
        self.meanwhile()
        return found, ("100", "0")


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    clock = [50.0]
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    return clock


def made(redis: Redis, listen: Callable[[], None] = lambda: None) -> RedisStops:
    scripts: Any = SimpleNamespace(client=redis, keys=SimpleNamespace(stopped="stopped"))
    return RedisStops(scripts, listen)


def test_a_stop_that_is_heard_of_while_none_is_read_is_read_next(here: list[float]) -> None:
    redis = Redis()
    stops = made(redis)
    redis.meanwhile = stops.catch_up
    assert stops.in_force() == ()
    redis.rows, redis.meanwhile = [f"pause 0 {stop_json(PAUSED)}"], lambda: None
    assert stops.in_force() == (PAUSED,)


def test_where_nothing_is_stopped_asking_costs_a_command_in_ten_seconds(here: list[float]) -> None:
    redis, order = Redis(), list[str]()
    redis.meanwhile = lambda: order.append("read")
    stops = made(redis, lambda: order.append("listen"))
    for _ in range(3):
        assert stops.in_force() == ()
    assert (redis.reads, order) == (1, ["listen", "read"]), "it listens before it reads"
    here[0] += NONE_KNOWN_S
    stops.in_force()
    assert redis.reads == 2
    stops.catch_up()
    stops.in_force()
    assert redis.reads == 3
    redis.rows = [f"pause 0 {stop_json(PAUSED)}"]
    stops.catch_up()
    for _ in range(2):
        assert stops.in_force() == (PAUSED,)
    assert redis.reads == 5, "what is stopped is asked for each time, for it may have been lifted"


@pytest.mark.parametrize(("ends_ms", "is_met"), [(100_001, True), (100_000, False), (99_999, False), (0, True)])
def test_one_that_has_ended_is_met_no_more(here: list[float], ends_ms: int, *, is_met: bool) -> None:
    redis = Redis()
    redis.rows = [f"pause {ends_ms} {stop_json(PAUSED)}"]
    assert made(redis).in_force() == ((PAUSED,) if is_met else ())


class Log:
    def __init__(self, log: list[str], **answers: Any) -> None:
        self._log, self._answers = log, answers

    def __getattr__(self, verb: str) -> Any:
        def act(*_: object) -> Any:
            self._log.append(verb)
            return self._answers.get(verb)

        return act


@pytest.mark.parametrize(
    ("stood", "was_met", "lifted"),
    [(True, True, True), (True, False, True), (False, True, True), (False, False, False)],
)
def test_what_waited_is_looked_at_wherever_the_stop_stood(*, stood: bool, was_met: bool, lifted: bool) -> None:
    log: list[str] = []
    rows: Any = Log(log, lift=stood)
    switch: Any = Log(log, drop=was_met)
    assert StopDesk(rows, switch).lift(PAUSED) is lifted
    assert log == ["lift", "drop", *(["hasten"] if lifted else [])]


def test_a_sweeper_takes_out_what_sql_has_no_more_and_has_its_turns_looked_at() -> None:
    log: list[str] = []
    rows: Any = Log(log, standing=(PAUSED,))
    switch: Any = Log(log, fields={PAUSED.field, FORBIDDEN.field})
    assert StopDesk(rows, switch).heal() == 1
    assert log == ["fields", "standing", "put", "drop", "forget_ended", "hasten"]
    log.clear()
    switch = Log(log, fields={PAUSED.field})
    assert StopDesk(rows, switch).heal() == 0
    assert log == ["fields", "standing", "put"]
