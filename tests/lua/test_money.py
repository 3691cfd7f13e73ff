"""Budgets: a call's worst case is reserved by the script that begins it, and settled by the one that ends it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, Rig
from tests.support.money import FAR_MS, LINE, TRUST, counted, counter, granted, held, money


def test_a_new_counter_asks_sql_first_and_begins_nothing(rig: Rig) -> None:
    rig.owned()
    reply = held(rig)
    assert reply[:3] == ["MONEY", "short", "all/day"]
    assert reply[4:] == ["0.1", "0.1", 0, "1"]
    assert rig.turn()["thinking"] == "0"
    assert rig.events()[-1] != "step.started"
    granted(rig, 1)
    assert held(rig) == ["GO", 1, 1], "the same request goes on"
    assert counted(rig, "held", "n", "granted") == [0.1, 1, 1]


def test_what_a_step_has_cost_takes_the_place_of_what_was_held(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    held(rig)
    rig.run("step_commit", calls="[]", cost="0.04")
    assert counted(rig, "held", "spent", "n") == [0, 0.04, 0]
    assert "money" not in rig.turn()
    assert rig.client.get(TRUST) == "1.0000"


LOST = json.dumps([{"kind": "lost", "step": 1, "input_tokens": 1, "cost_usd": 0.03}])


@pytest.mark.parametrize(
    ("ends", "given", "spent"),
    [
        ("turn_end", {"cost": "0.05"}, 0.05),
        ("turn_wait", {"lost": LOST, "after_ms": 10, "wait_ms": 10, "why": "x"}, 0.03),
        ("turn_park", {"parked_line": LINE, "lost": LOST, "after_ms": FAR_MS}, 0.03),
        ("step_begin", {"asked": "1:2", "lost": LOST}, 0.03),
        ("turn_claim", {"owner": "w2"}, 0.02),
    ],
)
def test_every_end_of_a_call_settles_it(rig: Rig, ends: str, given: dict[str, Any], spent: float) -> None:
    rig.owned()
    granted(rig, 1)
    rig.run("step_begin", money=money(rig), estimate_usd="0.02")
    if ends == "turn_claim":
        rig.pass_ms(LEASE_MS + 1)
    rig.run(ends, **given)
    assert counted(rig, "held", "n", "spent") == [0, 0, spent]


def test_a_call_that_was_not_billed_says_nothing_of_estimates(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    held(rig)
    rig.run("turn_end", lost="[]", spend="", cost="")
    assert counted(rig, "held", "spent") == [0, 0]
    assert not rig.client.exists(TRUST), "the next one is alone again"


def test_a_call_beside_the_steps_is_held_to_it_too(rig: Rig) -> None:
    rig.owned(max_reflections=3)
    beside = {"kind": "reflection", "mark": "1", "money": money(rig)}
    assert rig.run("aux_begin", **beside)[:2] == ["MONEY", "short"]
    granted(rig, 1)
    assert rig.run("aux_begin", **beside) == ["GO"]
    assert counted(rig, "held", "n") == [0.1, 1]
    rig.run("aux_commit", kind="reflection", cost="0.02")
    assert counted(rig, "held", "n", "spent") == [0, 0, 0.02]


def test_what_does_not_fit_beside_others_waits_and_what_fits_nowhere_is_short(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1, spent=0.95)
    assert held(rig)[:2] == ["MONEY", "short"]
    assert held(rig, usd=0.05) == ["GO", 1, 1]


def test_a_first_call_is_alone_and_so_is_one_whose_worst_case_is_not_known(rig: Rig) -> None:
    granted(rig, 1)
    rig.owned()
    rig.client.hset(counter(rig), mapping={"n": 1, "held": "0.1"})
    assert held(rig)[:2] == ["MONEY", "wait"], "nobody knows yet how far estimates can be trusted"
    rig.client.set(TRUST, "1")
    rig.client.hset(counter(rig), "blind", 1)
    assert held(rig, blind=True)[:2] == ["MONEY", "wait"]
    assert held(rig) == ["GO", 1, 1], "one whose worst case is known goes beside it"


def test_bills_above_what_was_held_make_the_next_ones_hold_more(rig: Rig) -> None:
    granted(rig, 1)
    rig.owned()
    held(rig)
    rig.run("step_commit", calls="[]", cost="0.3")
    assert rig.client.get(TRUST) == "3.0000"
    rig.client.hset(counter(rig), mapping={"n": 1, "held": "0.3"})
    rig.run("turn_claim", fence=1)
    assert held(rig, usd=0.2, fence=2)[:2] == ["MONEY", "short"], "0.3 spent, 0.3 held, and three times 0.2"


def test_without_budgets_nothing_is_written(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin")
    rig.run("step_commit", calls="[]", cost="0.3")
    assert not rig.client.keys("*{money}*")


def test_a_call_whose_worst_case_is_not_known_is_counted_until_it_is_over(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    rig.client.set(TRUST, "1")
    held(rig, blind=True)
    assert counted(rig, "n", "blind") == [1, 1]
    rig.run("step_commit", calls="[]", cost="0.04")
    assert counted(rig, "n", "blind", "spent") == [0, 0, 0.04]
    assert rig.client.get(TRUST) == "1", "its bill says nothing of estimates"


def test_a_counter_of_a_window_that_has_begun_meanwhile_is_asked(rig: Rig) -> None:
    """Its process read the clock before midnight."""
    rig.owned()
    granted(rig, 1)
    asked, old = money(rig), counter(rig)
    rig.pass_ms(86_400_000)
    rig.run("turn_claim", fence=1)
    reply = rig.run("step_begin", money=asked, fence=2)
    assert reply[:2] == ["MONEY", "short"]
    assert f"{old.rpartition(':')[0]}:{reply[3]}" == counter(rig)


def test_near_the_cap_a_turn_leaves_room_for_one_more_like_it(rig: Rig) -> None:
    rig.owned()
    granted(rig, 0.15)
    for is_full in "01":
        rig.client.hset(counter(rig), "full", is_full)
        assert rig.run("step_begin", money=money(rig, room=2))[:2] == ["MONEY", "short"]
    assert held(rig) == ["GO", 1, 1]


def test_what_is_likely_to_be_billed_is_granted_while_there_is_money(rig: Rig) -> None:
    rig.owned()
    granted(rig, 0.2)
    rig.client.set(TRUST, "3")
    reply = held(rig)
    assert (reply[1], reply[4:6]) == ("short", ["0.1", "0.3"])
    rig.client.hset(counter(rig), "full", "1")
    assert held(rig) == ["GO", 1, 1], "alone in its window it may be as dear as it likes, once"
    assert counted(rig, "held") == [pytest.approx(0.3)]


def test_of_several_windows_all_are_reserved_or_none(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    asked = json.loads(money(rig))
    other = {**asked["windows"][0], "key": "bq:{money}:w:brain b/day:", "name": "brain b/day"}
    asked["windows"].append(other)
    assert rig.run("step_begin", money=json.dumps(asked))[1:3] == ["short", "brain b/day"]
    assert counted(rig, "held", "n") == [0, 0]


@pytest.mark.parametrize(
    ("before", "reserved", "billed", "after"), [("5", 0.5, "0.04", "4.8000"), ("1", 0.1, "9", "10.0000")]
)
def test_trust_comes_back_slowly_and_has_a_bound(
    rig: Rig, before: str, reserved: float, billed: str, after: str
) -> None:
    granted(rig, 9)
    rig.client.set(TRUST, before)
    rig.owned()
    held(rig, usd=reserved)
    rig.run("step_commit", calls="[]", cost=billed)
    assert rig.client.get(TRUST) == after
