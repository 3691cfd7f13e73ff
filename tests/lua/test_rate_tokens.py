"""rate_take.lua, rate_settle.lua: a service that counts more tokens than are estimated."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lua.rig import Rig
from tests.lua.test_rate_take import COUNTS_MS, settle, take

WINDOW, ESTIMATE = 20_000, 400


def ask(rig: Rig, place: str, output: int = 0) -> list[Any]:
    return take(rig, place, tokens_most=WINDOW, tokens=ESTIMATE + output, estimated=ESTIMATE)


def answered(rig: Rig, place: str, counted: int, output: int = 0) -> list[Any]:
    return settle(rig, place, used=counted + output, estimated=ESTIMATE, counted=counted, answered_ms=0)


def rule(rig: Rig, field: str) -> str | None:
    return rig.client.hget(rig.keys.rate("openai:gpt", "rule"), field)


@pytest.mark.parametrize("factor", [1.0, 1.77, 3.9])
def test_a_first_burst_stays_within_the_window_of_a_service_that_counts_more(rig: Rig, factor: float) -> None:
    """Sixty ask at once; each answer takes six seconds; who waits comes when it was told to."""
    counts = round(ESTIMATE * factor)
    due = {f"p{i:02d}": 0 for i in range(60)}
    under_way: list[tuple[int, str]] = []
    spent, at = 0, 0
    while (now := min([*due.values(), *(when for when, _ in under_way)])) < 60_000:
        rig.pass_ms(now - at)
        at = now
        for when, place in tuple(under_way):
            if when <= at:
                under_way.remove((when, place))
                answered(rig, place, counts)
        for place in [place for place, when in due.items() if when <= at]:
            reply = ask(rig, place)
            if reply == ["GO"]:
                del due[place]
                under_way.append((at + 6_000, place))
                spent += counts
            else:
                due[place] = at + reply[1]
    assert 0.75 * WINDOW < spent <= WINDOW


def test_until_it_is_known_a_quarter_goes_and_the_others_look_again_soon(rig: Rig) -> None:
    replies = [ask(rig, f"p{i}") for i in range(14)]
    assert replies == [["GO"]] * 12 + [["WAIT", 3_000, "tokens", WINDOW]] * 2
    for i in range(12):
        answered(rig, f"p{i}", ESTIMATE)
    rig.pass_ms(3_000)
    assert ask(rig, "p12") == ["GO"]


def test_when_it_is_known_who_waits_is_told_its_time(rig: Rig) -> None:
    for i in range(12):
        ask(rig, f"p{i}")
        answered(rig, f"p{i}", ESTIMATE)
    replies = [ask(rig, f"q{i}") for i in range(40)]
    waits = [reply[1] for reply in replies if reply != ["GO"]]
    assert waits
    assert min(waits) > COUNTS_MS - 6_000


def test_an_answer_is_learned_from_once_and_a_high_estimate_makes_none_cheaper(rig: Rig) -> None:
    for i in range(40):
        ask(rig, f"p{i}")
        answered(rig, f"p{i}", 100)
        answered(rig, f"p{i}", 100)
    assert rule(rig, "ratio_n") == "40"
    before = int(rule(rig, "sum") or 0)
    ask(rig, "next")
    assert int(rule(rig, "sum") or 0) - before == ESTIMATE
