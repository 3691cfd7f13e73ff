"""What attempts at a step are charged as that bring no reply, in all scripts that charge them."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import LEASE_MS, TID, Rig


def said(*spends: dict[str, Any]) -> str:
    return json.dumps(list(spends))


def spend(output: int, **given: Any) -> dict[str, Any]:
    return {
        "kind": "lost",
        "step": 1,
        "model": "m",
        "input_tokens": 100,
        "output_tokens": output,
        "cost_usd": 0.25,
        "estimated": True,
    } | given


def charged(rig: Rig) -> list[int]:
    """The output of each spend, which together are what the budget has."""
    spends = [json.loads(one) for one in rig.client.lrange(rig.names(TID)["spends"], 0, -1)]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    for name in ("input_tokens", "output_tokens"):
        assert int(budget.get(name, 0)) == sum(one.get(name, 0) for one in spends)
    assert float(budget.get("cost_usd", 0)) == sum(one.get("cost_usd", 0) for one in spends)
    return [one.get("output_tokens", 0) for one in spends]


def taken(rig: Rig, fence: int = 1) -> None:
    """By another worker, after its owner died."""
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", owner=f"w{fence + 1}", fence=fence, most_lost=9)[0] == "GO"


def test_the_attempt_before_is_charged_as_its_owner_says_and_in_the_budget_before_the_next(rig: Rig) -> None:
    rig.owned(max_cost_usd="0.6")
    rig.run("step_begin", under_way=said(spend(0)))
    lost = said(spend(7), spend(9))
    assert rig.run("step_begin", asked="1:2", lost=lost, estimate_usd="0.2") == ["SPENT", "cost"]
    assert charged(rig) == [7, 9]


def test_an_owner_that_says_that_nothing_was_lost_is_charged_nothing(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", under_way=said(spend(0)))
    assert rig.run("step_begin", asked="1:2", lost="[]") == ["GO", 1, 2]
    assert charged(rig) == []


def test_of_a_dead_owner_the_newest_word_counts(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", under_way=said(spend(0)))
    rig.run("step_delta", kind="text.delta", under_way="1:1 " + said(spend(5)))
    rig.run("turn_beat", under_way="1:1 " + said(spend(8), spend(3)))
    rig.run("turn_beat")
    taken(rig)
    assert charged(rig) == [8, 3]


def test_one_that_died_at_once_is_charged_as_it_was_begun(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", under_way=said(spend(0)))
    taken(rig)
    assert charged(rig) == [0]


def test_a_word_about_another_attempt_does_not_count(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", under_way=said(spend(0)))
    rig.run("step_begin", asked="1:2", lost="[]", estimate=123)  # its own word is missing: an older build's
    rig.run("turn_beat", under_way="1:1 " + said(spend(99)))
    taken(rig)
    assert charged(rig) == [0]
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "123"


def test_an_ending_charges_what_it_is_told_or_what_is_under_way(rig: Rig) -> None:
    for lost, expected in (("", [6]), ("[]", []), (said(spend(4)), [4])):
        rig.client.flushdb()
        rig.begin()
        rig.owned()
        rig.run("step_begin", under_way=said(spend(6)))
        assert rig.run("turn_end", spend="", lost=lost, ending="failed", stop_reason="model_error")[0] == "ENDED"
        assert charged(rig) == expected


def test_a_commit_charges_what_was_lost_on_its_way(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", under_way=said(spend(6)))
    used = spend(1, kind="step")
    given: dict[str, Any] = {"input": 100, "output": 1, "cost": "0.25", "spend": json.dumps(used)}
    assert rig.run("step_commit", item="{}", calls="[]", lost=said(spend(2)), **given) == ["COMMITTED"]
    assert charged(rig) == [2, 1]
