"""rate_take.lua: places among the requests of a window."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.lua.rig import Rig
from tests.support.arrivals import most_in_a_window

WINDOW_MS, SLACK_MS = 60_000, 5_000
COUNTS_MS = WINDOW_MS + SLACK_MS
PARTS = ("places", "line", "order", "due", "rule", "tenants", "by")


def take(rig: Rig, place: str, ticket: str = "", **given: Any) -> list[Any]:
    return rig.run("rate_take", **arguments(rig, place, ticket, given))


def take_once(rig: Rig, place: str, ticket: str, **given: Any) -> list[Any]:
    """Where it is not this script that is tested, it is run once."""
    return rig.once("rate_take", **arguments(rig, place, ticket, {"tokens": 1, "most_wait_ms": 10**8, **given}))


def arguments(rig: Rig, place: str, ticket: str, given: dict[str, Any]) -> dict[str, Any]:
    return {
        **{part: rig.keys.rate("openai:gpt", part) for part in PARTS},
        "limited": rig.keys.limited,
        "model": "openai:gpt",
        "place": place,
        "ticket": ticket or f"turn of {place}",
        "rank": 2,
        "requests_most": "",
        "tokens_most": "",
        "tokens": 10,
        "estimated": 0,
        "most_wait_ms": 10_000_000,
        "window_ms": WINDOW_MS,
        "slack_ms": SLACK_MS,
        **given,
    }


def settle(rig: Rig, place: str, **given: Any) -> list[Any]:
    asked: dict[str, Any] = {
        **{part: rig.keys.rate("openai:gpt", part) for part in ("places", "rule")},
        "limited": rig.keys.limited,
        "model": "openai:gpt",
        "place": place,
        "mark": place,
        "used": "",
        "estimated": "",
        "counted": "",
        "answered_ms": "",
        "window_ms": WINDOW_MS,
        "requests": "",
        "tokens": "",
        "stop_ms": 0,
        "probes": 0,
    }
    return rig.run("rate_settle", **asked | given)


def test_a_window_holds_no_more_than_the_limit(rig: Rig) -> None:
    assert [take(rig, f"p{i}", requests_most=3) for i in range(3)] == [["GO"]] * 3
    assert take(rig, "p3", requests_most=3) == ["WAIT", COUNTS_MS, "requests", 3]
    rig.pass_ms(COUNTS_MS - 1)
    assert take(rig, "p3", requests_most=3)[:2] == ["WAIT", 1]
    rig.pass_ms(1)
    assert take(rig, "p3", requests_most=3) == ["GO"]


def test_a_place_counts_a_window_from_where_its_answer_began(rig: Rig) -> None:
    take(rig, "p0", requests_most=1)
    rig.pass_ms(3_000)
    settle(rig, "p0", answered_ms=1_000)
    assert take(rig, "p1", requests_most=1)[:2] == ["WAIT", WINDOW_MS - 1_000]


def test_who_waits_goes_first_come_first_served_each_at_its_own_time(rig: Rig) -> None:
    for i in range(2):
        take(rig, f"p{i}", requests_most=2)
        rig.pass_ms(1_000)
    waits = [take(rig, f"w{i}", requests_most=2)[1] for i in range(5)]
    assert waits == [63_000, 64_000, 124_000, 124_000, 184_000]
    rig.pass_ms(63_000)
    assert take(rig, "new", requests_most=2)[0] == "WAIT"
    assert take(rig, "w1", requests_most=2)[:2] == ["WAIT", 1_000]
    assert take(rig, "w0", requests_most=2) == ["GO"]
    rig.pass_ms(1_000)
    assert take(rig, "w1", requests_most=2) == ["GO"]


def test_a_waiter_that_never_comes_holds_nobody_up(rig: Rig) -> None:
    take(rig, "p0", requests_most=1)
    take(rig, "dead", requests_most=1)
    take(rig, "next", requests_most=1)
    rig.pass_ms(COUNTS_MS)
    assert take(rig, "next", requests_most=1)[0] == "WAIT"
    rig.pass_ms(10_001)
    assert take(rig, "next", requests_most=1) == ["GO"]
    assert rig.client.zrange(rig.keys.rate("openai:gpt", "line"), 0, -1) == []


def test_nobody_waits_for_what_comes_too_late(rig: Rig) -> None:
    take(rig, "p0", requests_most=1)
    assert take(rig, "p1", requests_most=1, most_wait_ms=1_000) == ["LATE", COUNTS_MS, "requests", 1]
    assert take(rig, "p2", requests_most=1)[:2] == ["WAIT", COUNTS_MS]


def test_tokens_are_reserved_then_settled(rig: Rig) -> None:
    assert take(rig, "p0", tokens_most=100, tokens=60) == ["GO"]
    rig.pass_ms(1_000)
    assert take(rig, "p1", tokens_most=100, tokens=50) == ["WAIT", COUNTS_MS - 1_000, "tokens", 100]
    settle(rig, "p0", used=40)
    assert take(rig, "p1", tokens_most=100, tokens=50) == ["GO"]
    assert take(rig, "p2", tokens_most=100, tokens=20)[0] == "WAIT"
    settle(rig, "p1", used=70)
    assert rig.client.hget(rig.keys.rate("openai:gpt", "rule"), "sum") == "110"


def test_tokens_of_those_ahead_are_not_taken_from_them(rig: Rig) -> None:
    take(rig, "p0", tokens_most=100, tokens=60)
    take(rig, "big", tokens_most=100, tokens=90)
    assert take(rig, "small", tokens_most=100, tokens=20)[0] == "WAIT"
    rig.pass_ms(COUNTS_MS)
    assert take(rig, "small", tokens_most=100, tokens=20)[0] == "WAIT"
    assert take(rig, "big", tokens_most=100, tokens=90) == ["GO"]


def test_a_request_greater_than_the_limit_goes_alone(rig: Rig) -> None:
    take(rig, "p0", tokens_most=100, tokens=1)
    assert take(rig, "huge", tokens_most=100, tokens=500)[:2] == ["WAIT", COUNTS_MS]
    rig.pass_ms(COUNTS_MS)
    assert take(rig, "huge", tokens_most=100, tokens=500) == ["GO"]


def test_a_stop_is_for_all_and_each_comes_back_at_its_own_time(rig: Rig) -> None:
    settle(rig, "p0", stop_ms=20_000)
    assert [take(rig, f"w{i}")[1] for i in range(3)] == [20_000, 20_050, 20_100]
    rig.pass_ms(20_000)
    assert take(rig, "w0") == ["GO"]


def test_the_smaller_of_a_set_and_a_learned_limit_holds_while_it_is_fresh(rig: Rig) -> None:
    settle(rig, "p", requests=1)
    take(rig, "p0", requests_most=9)
    assert take(rig, "p1", requests_most=9) == ["WAIT", COUNTS_MS, "requests", 1]
    rig.pass_ms(3_600_000)
    assert [take(rig, f"q{i}", requests_most=9) for i in range(2)] == [["GO"]] * 2


def test_a_clock_that_stepped_back_keeps_nobody_waiting_longer(rig: Rig) -> None:
    take(rig, "p0", requests_most=1)
    take(rig, "w0", requests_most=1)
    rig.pass_ms(-3_600_000)
    assert take(rig, "w0", requests_most=1)[:2] == ["WAIT", COUNTS_MS]
    assert take(rig, "w0", requests_most=1)[:2] == ["WAIT", COUNTS_MS]


def test_every_key_ends_by_itself(rig: Rig) -> None:
    take(rig, "p0", requests_most=1)
    take(rig, "w0", requests_most=1)
    settle(rig, "p0", used=5, requests=60)
    assert rig.client.keys(f"{rig.keys.prefix}rate:*")
    assert all(left >= 3_600_000 for key, left in rig.lifetimes().items() if key.startswith(rig.keys.prefix))


@pytest.mark.parametrize("seed", range(3))
def test_no_window_of_the_services_holds_one_more(rig: Rig, seed: int) -> None:
    """Forty of two tenants ask at once, again and again. A request arrives when it likes within the slack, is
    answered when it likes after that, or never; who waits comes when told, or late."""
    rng, most, names = Random(seed), 8, [f"{'abb'[i % 3]}:{i}" for i in range(40)]
    arrivals: list[int] = []
    due = dict.fromkeys(names, rig.now_ms)
    answers: list[tuple[int, int, str]] = []
    keys = rig.keys
    parts = {part: keys.rate("openai:gpt", part) for part in PARTS}
    begun_ms, asked = rig.now_ms, 0
    while len(arrivals) < 100:
        name = min(due, key=lambda one: due[one])
        at = max(due[name], rig.now_ms)
        if answers and answers[0][0] <= at:
            answered_ms, began_ms, place = answers.pop(0)
            rig.pass_ms(max(0, answered_ms - rig.now_ms))
            rig.once(
                "rate_settle",
                **parts,
                limited=keys.limited,
                model="openai:gpt",
                place=place,
                mark=place,
                used=1,
                estimated="",
                counted="",
                answered_ms=rig.now_ms - began_ms,
                window_ms=WINDOW_MS,
                requests="",
                tokens="",
                stop_ms=0,
                probes="0",
            )
            continue
        rig.pass_ms(at - rig.now_ms)
        asked += 1
        reply = take_once(rig, f"{name} p{asked}", name, requests_most=most)
        if reply != ["GO"]:
            due[name] = rig.now_ms + reply[1] + rng.choice((0, 0, rng.randrange(15_000)))
            continue
        arrivals.append(rig.now_ms + rng.randrange(SLACK_MS))
        if rng.random() < 0.8:
            began_ms = arrivals[-1] + rng.randrange(4_000)
            answers.append((began_ms + rng.randrange(90_000), began_ms, f"{name} p{asked}"))
            answers.sort()
        due[name] = rig.now_ms + rng.randrange(3_000)
    assert most_in_a_window(arrivals, WINDOW_MS) == most
    # Nor is the limit used by half: what waits for an answer costs the slack, and no more.
    assert rig.now_ms - begun_ms < 100 / most * (WINDOW_MS + SLACK_MS) * 1.3
