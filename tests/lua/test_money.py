"""The scripts of budgets: what calls reserve and cost, and how parked turns go on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, SID, TID, TIMEOUT_MS, WRITE, Rig
from tests.support.money import FAR_MS, LINE, TRUST, counted, counter, granted, held, money

# Budgets: a call's worst case is reserved by the script that begins it, and settled by the one that ends it.


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


# money_take.lua and money_settle.lua: calls after a turn's end.


def test_a_call_after_the_turn_is_taken_once_and_settled_once(rig: Rig) -> None:
    ticket = "bq:{money}:call:t:judge"
    taken = {"ticket": ticket, "money": money(rig)}
    assert rig.run("money_take", **taken)[:2] == ["MONEY", "short"]
    granted(rig, 1)
    assert rig.run("money_take", **taken) == ["GO"]
    assert counted(rig, "spent", "held", "n") == [0.1, 0, 0]
    assert rig.run("money_settle", ticket=ticket, usd="0.25") == ["SETTLED"]
    assert counted(rig, "spent") == [0.25]


def test_a_call_after_the_turn_whose_worst_case_is_not_known_is_over_at_once(rig: Rig) -> None:
    granted(rig, 1)
    assert rig.run("money_take", ticket="bq:{money}:call:c1", money=money(rig, blind=True), keep_ms=1000) == ["GO"]
    assert counted(rig, "n", "blind", "held", "spent") == [0, 0, 0, 0.1]


# money_settle.lua: what a call after a turn's end has cost takes the place of what was taken for it, once.


TICKET = "bq:{money}:call:t:judge"


def test_it_is_settled_once(rig: Rig) -> None:
    granted(rig, 1)
    rig.run("money_take", ticket=TICKET, money=money(rig))
    assert rig.run("money_settle", ticket=TICKET, usd="0.04") == ["SETTLED"]
    assert rig.run("money_settle", ticket=TICKET, usd="0.9") == ["ALREADY"]
    assert counted(rig, "spent", "held") == [0.04, 0]


def test_a_window_that_is_gone_is_not_made_anew(rig: Rig) -> None:
    granted(rig, 1)
    rig.run("money_take", ticket=TICKET, money=money(rig))
    rig.client.delete(counter(rig))
    rig.run("money_settle", ticket=TICKET, usd="0.04")
    assert not rig.client.exists(counter(rig))


# money_return.lua: what one cell has left of a budget is another's.


def test_what_is_left_is_taken_once_and_counts_as_spent(rig: Rig) -> None:
    granted(rig, 1)
    rig.client.hset(counter(rig), "spent", "0.4")
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["RETURNED", "0.6"]
    assert counted(rig, "granted", "spent", "returned") == [1, 1, 0.6]
    rig.owned()
    assert held(rig)[:2] == ["MONEY", "short"]


def test_a_call_in_flight_keeps_it(rig: Rig) -> None:
    rig.owned()
    granted(rig, 1)
    held(rig)
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["BUSY"]
    assert counted(rig, "spent", "returned") == [0, 0]


def test_nothing_is_left_of_what_is_not_there(rig: Rig) -> None:
    assert rig.run("money_return", counter=counter(rig), least="0.001") == ["RETURNED", "0"]


# money_grant.lua: what SQL has granted a window.


def test_a_lost_counter_begins_with_all_that_was_granted(rig: Rig) -> None:
    granted(rig, 0.55, spent=0.5)
    granted(rig, 0.4, spent=0.0)
    assert counted(rig, "granted", "spent") == [0.55, 0.5], "it is granted no less than before"
    assert rig.client.pttl(counter(rig)) > 0


def test_it_is_said_again(rig: Rig) -> None:
    given: dict[str, Any] = {
        "counter": counter(rig),
        "granted": "0.5",
        "spent": "0.1",
        "is_full": "1",
        "returned": "0",
        "keep_ms": 1000,
    }
    assert rig.run("money_grant", **given) == ["GRANTED"]


def test_a_counter_of_another_redis_lacks_what_was_spent_last(rig: Rig) -> None:
    granted(rig, 0.6)
    rig.client.hset(counter(rig), mapping={"spent": "0.2", "held": "0.1", "n": 1, "run": "another"})
    granted(rig, 0.7, spent=0.6)
    assert counted(rig, "granted", "spent", "held") == [0.7, 0.5, 0.1], "with what is held it comes to what was granted"
    granted(rig, 0.8, spent=0.7)
    assert counted(rig, "spent") == [0.5], "once"


# money_resume.lua: turns that are parked for a budget go on when it is raised, or its window turns.


def test_a_parked_turn_goes_on_when_its_window_turns_or_it_is_raised(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "people")
    assert rig.client.zcard(LINE) == 1
    rig.run("turn_sweep")
    assert rig.turn()["state"] == "parked"
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    rig.run("turn_sweep")
    assert (rig.look_in_ms() or FAR_MS) <= 5_000, "should that message be lost, it is looked at again"
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("active", "coordinator")
    assert rig.client.zcard(LINE) == 0
    assert rig.bells("brainq.turns")[-1][1] == TID
    assert rig.run("turn_claim", fence=1)[0] == "GO"


def test_who_has_gone_on_leaves_the_line(rig: Rig) -> None:
    rig.client.zadd(LINE, {f"s1 {TID}": 1})
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    assert not rig.client.exists(LINE)


def test_who_is_hidden_while_its_tenant_moves_keeps_its_place(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    turn = rig.keys.turn(SID, TID)
    hidden = turn.replace("}:t:", "}:moving:t:")
    rig.client.rename(turn, hidden)
    for _ in range(2):
        assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
        assert rig.client.zcard(LINE) == 1
    rig.client.rename(hidden, turn)
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    rig.run("turn_sweep")
    assert rig.turn()["state"] == "active"


# budget_create.lua: a budget of its own.


def test_it_is_made_once_and_goes_by_itself(rig: Rig) -> None:
    assert rig.run("budget_create", max_steps=3) == ["CREATED"]
    assert rig.run("budget_create", max_steps=9) == ["EXISTS"]
    budget = rig.names(TID)["budget"]
    assert rig.client.hget(budget, "steps_max") == "3"
    assert 0 < rig.client.pttl(budget) <= 50_000


# budget_claim.lua: never more than there is.


def test_each_id_pays_once_and_the_last_unit_goes_to_one(rig: Rig) -> None:
    rig.active(max_tool_calls=2)
    assert rig.run("budget_claim", kind="tool_calls", ids=["a", "b", "a", "c"]) == [
        "DONE",
        "CLAIMED",
        "CLAIMED",
        "ALREADY",
        "SPENT",
    ]
    assert rig.run("budget_claim", kind="tool_calls", ids=["a", "d"]) == ["DONE", "ALREADY", "SPENT"]
    assert rig.client.hget(rig.names(TID)["budget"], "tool_calls_used") == "2"


def test_nothing_is_claimed_past_the_deadline(rig: Rig) -> None:
    rig.active()
    rig.pass_ms(TIMEOUT_MS)
    assert rig.run("budget_claim", ids=["a"]) == ["EXPIRED"]


def test_a_parked_turns_deadline_stands_still(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place")
    rig.run("call_claim")
    assert rig.turn()["state"] == "parked"
    rig.pass_ms(TIMEOUT_MS + 1)
    assert rig.run("budget_claim", kind="steps", ids=["a"]) == ["DONE", "CLAIMED"]


# budget_spend.lua: tokens and money.


def test_the_same_spending_counts_once(rig: Rig) -> None:
    rig.active()
    assert rig.run("budget_spend", input=3, output=4, cost="0.5") == ["ADDED"]
    assert rig.run("budget_spend", input=3, output=4, cost="0.5") == ["ALREADY"]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["input_tokens"], budget["output_tokens"], budget["cost_usd"]) == ("3", "4", "0.5")


def test_a_budget_that_is_gone_does_not_come_back(rig: Rig) -> None:
    assert rig.run("budget_spend", input=3) == ["GONE"]
    assert not rig.client.exists(rig.names(TID)["budget"])


def test_what_was_used_is_only_ever_added(rig: Rig) -> None:
    rig.active()
    rig.run("budget_spend", input=30, output=40, cache_read=5, cost="0.5")
    less: dict[str, Any] = {"input": -1_000_000, "output": -1, "cache_read": -5, "cache_creation": -5, "cost": "-3.0"}
    assert rig.run("budget_spend", id="another", **less) == ["ADDED"]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["input_tokens"], budget["output_tokens"], budget["cost_usd"]) == ("30", "40", "0.5")
    assert (budget["cache_read_tokens"], budget.get("cache_creation_tokens")) == ("5", None)


def test_a_price_of_nothing_is_known(rig: Rig) -> None:
    rig.active()
    rig.run("budget_spend", input=3, cost="0.0")
    assert float(rig.client.hgetall(rig.names(TID)["budget"])["cost_usd"]) == 0
