"""Budgets over whole turns: who is held to them, what is done at the cap, and how it goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest

from brainq import Brain, BudgetSpent, InvalidInput, Limits, ScriptedProvider
from brainq.client.erase import erase
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending, StopReason, TurnState
from brainq.engine.models.scripted import says
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
STEP_USD = 0.2
TOKENS = 1000
LEASE_S = 30.0  # of coordinators that wait for each other, however slow the machine: none may lose its turn
IDLE_LOOKS = 60
MOST_LOOKS = 500


def price(provider: str, model: str, usage: TokenUsage) -> float:
    """A fifth of a dollar for each thousand tokens of output; input is free."""
    return usage.output_tokens * STEP_USD / TOKENS


@pytest.fixture(autouse=True)
def priced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", price)


def brain(billed: int = TOKENS, bounded: bool = True, rules: Any = None, name: str = "b") -> Brain:
    def answer(request: ModelRequest) -> ModelReply:
        return says("Done.", usage=TokenUsage(input_tokens=10, output_tokens=billed))

    limits = Limits(max_output_tokens=TOKENS) if bounded else Limits()
    return Brain(name, ScriptedProvider(rules=rules or answer), limits=limits)


def work_together(crowd: list[Pump]) -> None:
    """Each in a thread of its own, until there is nothing to do."""

    def work(pump: Pump) -> None:
        idle = 0
        for _ in range(MOST_LOOKS):
            if bell := pump.take("brainq.turns"):
                pump.answer(bell)
                idle = 0
                continue
            idle += 1
            pump.sweep()
            if idle % 20 == 1:
                pump.wiring.sweeper.compare()
            if idle >= IDLE_LOOKS and not going_on(pump):
                return
        pytest.fail(f"turns still go on after {MOST_LOOKS} looks of each coordinator")

    with ThreadPoolExecutor(len(crowd)) as pool:
        list(pool.map(work, crowd))


def going_on(pump: Pump) -> bool:
    return bool({turn.state for turn in pump.client.turns(limit=50)} & {TurnState.QUEUED, TurnState.ACTIVE})


def spent(pump: Pump, scope: str = "all", per: str = "day") -> float:
    (state,) = [one for one in pump.wiring.budgets.list() if (one.scope, one.per) == (scope, per)]
    return round(state.spent_usd + state.held_usd, 6)


def test_a_budget_parks_is_raised_and_goes_on(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="all day=0.5 park")
    ends = []
    for number in range(3):
        handle = pump.submit(f"s{number}", "hello")
        pump.drain()
        ends.append(handle)
    assert [handle.snapshot().state for handle in ends][-1] is TurnState.PARKED
    assert "budget all/day, which is spent" in ends[-1].explain()
    assert spent(pump) == 0.4
    (state,) = pump.client.budgets.list()
    assert (state.parked, state.is_spent, state.left_usd) == (1, True, pytest.approx(0.1))
    assert pump.client.budgets.raise_by("all", "day", 0.2, by="ann") == pytest.approx(0.7)
    pump.sweep()
    pump.drain()
    assert ends[-1].result().stop_reason is StopReason.ANSWERED
    assert spent(pump) == pytest.approx(0.6)


def test_new_turns_are_refused_and_live_ones_end(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="tenant day=0.3 refuse")
    first = pump.submit("acme:1", "hello")
    pump.drain()
    assert first.result().stop_reason is StopReason.ANSWERED
    last = pump.submit("acme:2", "hello")
    pump.drain()
    assert (last.result().ending, last.result().stop_reason) == (Ending.COMPLETED, StopReason.MAX_COST)
    assert "budget tenant acme:/day is spent" in last.result().text
    with pytest.raises(BudgetSpent, match="tenant acme:/day"):
        pump.submit("acme:3", "hello")
    assert pump.submit("beta:1", "hello").turn_id, "another tenant has its own"


def test_at_the_cap_the_last_answer_has_no_tools(pumps: Pumps) -> None:
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> ModelReply:
        asked.append(request)
        return says("Done.", usage=TokenUsage(output_tokens=TOKENS))

    pump = pumps(brain(rules=answer), budgets="brain b day=0.5 finish")
    for number in range(3):
        pump.submit(f"s{number}", "hello")
        pump.drain()
    assert [request.options.tool_choice for request in asked] == [None, "none"], "0.4 is left once, then 0.3, then 0.1"


def test_a_call_whose_worst_case_is_not_known_is_alone(pumps: Pumps) -> None:
    inside: list[str] = []

    def look(request: ModelRequest) -> ModelReply:
        if not inside:
            inside.append(request.turn_id)
            second = other.submit("s2", "hello")
            other.drain("brainq.turns")
            inside.append(second.explain())
        return says("Done.", usage=TokenUsage(output_tokens=TOKENS))

    pump, other = (pumps(brain(bounded=False, rules=look), owner=owner, budgets="all day=1") for owner in "ab")
    pump.submit("s1", "hello")
    pump.drain()
    assert "it waits for budget all/day" in inside[1]
    assert spent(pump) == STEP_USD


def test_a_lost_redis_is_taken_to_have_spent_what_it_was_granted(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="all day=1")
    pump.submit("s1", "hello")
    pump.drain()
    pump.wiring.state.redis.flushall()
    pump.submit("s2", "hello")
    pump.drain()
    assert 2 * STEP_USD <= spent(pump) <= 2 * STEP_USD + 0.05, "never too low, too high by a part in twenty at most"


def test_a_redis_that_lost_its_last_second_is_taken_to_have_spent_what_it_was_granted(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="all day=1")
    pump.submit("s1", "hello")
    pump.drain()
    redis: Any = pump.wiring.state.redis
    (counter,) = redis.keys("*{money}:w:*")
    redis.hset(counter, mapping={"spent": 0, "run": "the one before"})
    redis.delete(pump.wiring.state.keys.epoch)  # as the sweeper hears of it
    pump.wiring.sweeper.compare()
    assert STEP_USD <= spent(pump) <= STEP_USD + 0.05


@pytest.mark.parametrize(
    ("coordinators", "billed"), [(3, 3 * TOKENS), pytest.param(8, 3 * TOKENS, marks=pytest.mark.full)]
)
def test_a_redis_that_is_wiped_under_load_lets_no_cap_be_passed_by_more_than_one_call(
    pumps: Pumps, coordinators: int, billed: int
) -> None:
    bills: list[float] = []
    wiped = threading.Event()

    def answer(request: ModelRequest) -> ModelReply:
        usage = TokenUsage(output_tokens=billed)
        bills.append(price("", "", usage))
        if sum(bills) > 2.5 and not wiped.is_set():
            wiped.set()
            crowd[0].wiring.state.redis.flushall()  # this call is in flight, and others may be
        return says("Done.", usage=usage)

    crowd = [
        pumps(brain(rules=answer), owner=f"p{n}", budgets="all day=6 park", lease_s=LEASE_S)
        for n in range(coordinators)
    ]
    for number in range(5 * coordinators):
        crowd[0].submit(f"s{number}", "hello")
    work_together(crowd)
    assert wiped.is_set()
    assert sum(bills) <= 6 + bills[0] + 1e-6, "by one call at most, and what was billed before is not forgotten"
    assert sum(bills) > 2.5 + bills[0], "and turns went on after it"
    assert any(turn.state == "parked" for turn in crowd[0].client.turns(limit=50))


def test_budgets_that_people_set_win_and_are_heard_of(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="user day=9")
    pump.client.budgets.set("user acme:ann:", per="day", usd=0.1, at_cap="refuse", by="ops")
    pump.wiring.budgets.forget()
    ann, bob = pump.submit("acme:ann:1", "hello"), pump.submit("acme:bob:1", "hello")
    pump.drain()
    assert (ann.result().stop_reason, bob.result().stop_reason) == (StopReason.MAX_COST, StopReason.ANSWERED)
    with pytest.raises(InvalidInput, match="scope"):
        pump.client.budgets.raise_by("brain nobody", "day", 1.0, by="ann")
    with pytest.raises(InvalidInput, match="at_cap"):
        pump.client.budgets.set("all", per="day", usd=1, at_cap="stop", by="ann")


@pytest.mark.parametrize(
    ("coordinators", "billed"),
    [
        (3, 3 * TOKENS),
        pytest.param(8, TOKENS, marks=pytest.mark.full),
        pytest.param(8, 3 * TOKENS, marks=pytest.mark.full),
    ],
)
def test_coordinators_pass_a_cap_by_one_call_at_most(pumps: Pumps, coordinators: int, billed: int) -> None:
    crowd = [
        pumps(brain(billed), owner=f"p{n}", budgets="all day=3 park", lease_s=LEASE_S) for n in range(coordinators)
    ]
    for number in range(3 * coordinators):
        crowd[0].submit(f"s{number}", "hello")
    work_together(crowd)
    usd = spent(crowd[0])
    assert usd <= 3 + price("", "", TokenUsage(output_tokens=billed)), "by one call at most"
    assert usd > 3 - 2 * price("", "", TokenUsage(output_tokens=billed)), "and it was used"
    assert any(turn.state == "parked" for turn in crowd[0].client.turns(limit=50))
    assert datetime.now(UTC) < crowd[0].client.budgets.list()[0].ends_at


def test_what_a_tenants_budgets_have_counted_is_erased_with_it(pumps: Pumps) -> None:
    pump = pumps(brain(), budgets="all day=9; tenant day=1; user day=1")
    for session_id in ("acme:ann:1", "acme2:bob:1"):
        pump.submit(session_id, "hello")
        pump.drain()
    done = erase(pump.wiring, ErasureScope.of(None, "acme:"))
    assert (done.rows["budget_windows"], done.left) == (2, {})
    found = [one.scope for one in pump.client.budgets.list() if one.spent_usd]
    assert found == ["all", "tenant acme2:", "user acme2:bob:"]
    assert [key for key in pump.wiring.state.redis.keys("*") if "acme:" in str(key)] == []


def test_setting_a_budget_names_the_models_that_it_does_not_hold(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> None:
        return None

    monkeypatch.setattr("brainq.app.wiring.machines.cost_usd", unknown)
    own = Brain("own", ScriptedProvider([says("Done.")], name="mine"))
    pump = pumps([Brain("free", "offline:rules"), own])
    budgets = pump.client.budgets
    assert budgets.set("all", per="day", usd=1) == ("mine",), "a brain of this process asks it"
    assert budgets.set("brain own", per="day", usd=1) == ("mine",)
    assert budgets.set("brain free", per="day", usd=1) == ()
    assert budgets.set("all", per="day", usd=None) == ()
    pump.finish(pump.submit("acme:1", "hello", brain="own"))
    elsewhere = pumps(Brain("operator", "offline:rules")).client.budgets
    assert elsewhere.set("tenant acme:", per="day", usd=1) == ("mine",), "it was asked"
    assert elsewhere.set("brain own", per="day", usd=1) == ("mine",)
    assert elsewhere.set("tenant beta:", per="day", usd=1) == elsewhere.set("brain free", per="day", usd=1) == ()
