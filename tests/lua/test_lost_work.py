"""The scripts that find lost work: leases that lapse, attempts that were lost, turns that are blamed."""

from __future__ import annotations

import json
from typing import Any

import pytest

from brainq.adapters.celery.names import FINALIZE_QUEUE, TURNS_QUEUE
from brainq.adapters.redis.calls import NEVER_RENEWED_MS
from tests.lua.rig import LEASE_MS, TID, TIMEOUT_MS, Rig

# leases_lapse.lua: what a process that is gone holds of a turn ends at once.


def absent(rig: Rig, after_ms: int = 1) -> dict[str, Any]:
    """`w1` was missed first so long after now, and is found gone a second later."""
    rig.pass_ms(after_ms)
    missed_at = rig.now_ms
    rig.pass_ms(1_000)
    return {"process": "w1", "absent_at": missed_at}


def lease(rig: Rig, call: str = "c1-0") -> int:
    return int(rig.client.hget(rig.names("t01")["trace"], f"{call}:lease"))


def lanes_until(rig: Rig, call: str = "c1-0") -> int:
    """When the lease of its lanes ends; 0: it has none."""
    return int(rig.client.zscore(rig.names("t01")["leases"], f"s1 t01 {call}") or 0)


def test_the_lease_of_a_turn_ends_and_its_sweep_rings_for_others(rig: Rig) -> None:
    rig.owned()
    rig.bells(TURNS_QUEUE)
    gone = absent(rig)
    assert rig.run("leases_lapse", **gone) == ["LAPSED", 1]
    assert rig.look_in_ms() == 0
    assert rig.run("turn_sweep")[3] == "1", "its owner is lost"
    assert rig.bells(TURNS_QUEUE) == [["s1", "t01", 1]]


@pytest.mark.parametrize("owner", ["w2", "7@w2", "7@xw1", "w1-2"])
def test_another_process_keeps_what_it_holds(rig: Rig, owner: str) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, owner=owner)
    assert rig.run("leases_lapse", **absent(rig)) == ["NONE"]
    assert rig.turn()["lease_until"] == str(rig.now_ms + LEASE_MS - 1_001)


def test_a_claim_that_signed_with_a_number_is_its_process(rig: Rig) -> None:
    rig.active()
    rig.run("turn_claim", fence=0, owner="12@w1")
    assert rig.run("leases_lapse", **absent(rig)) == ["LAPSED", 1]


def test_what_was_renewed_after_it_was_missed_stays(rig: Rig) -> None:
    rig.owned()
    gone = absent(rig)
    assert rig.run("turn_beat") == ["OK"]
    assert rig.run("leases_lapse", **gone) == ["NONE"]


def test_one_that_lives_after_all_takes_it_back_with_its_next_beat(rig: Rig) -> None:
    rig.owned()
    rig.run("leases_lapse", **absent(rig))
    assert rig.run("turn_beat") == ["OK"]
    assert rig.turn()["lease_until"] == str(rig.now_ms + LEASE_MS)


def test_a_read_is_rescued_at_once(rig: Rig) -> None:
    rig.running(effect="read_only")
    assert rig.run("leases_lapse", **absent(rig)) == ["LAPSED", 1]
    assert "rescue c1-0 1" in rig.run("turn_sweep")[2]


def test_a_write_that_has_not_begun_is_rescued_at_once(rig: Rig) -> None:
    rig.running(effect="local_write")
    assert rig.run("leases_lapse", **absent(rig)) == ["LAPSED", 1]
    assert "rescue c1-0 1" in rig.run("turn_sweep")[2]


def test_a_write_that_has_not_begun_keeps_its_lanes_for_the_next_attempt(rig: Rig) -> None:
    rig.running(effect="local_write", lanes='["a"]')
    assert rig.run("call_next_attempt") == ["ALIVE"], "its lanes have a lease from when they were granted"
    rig.run("leases_lapse", **absent(rig))
    assert rig.run("call_next_attempt") == ["AGAIN", 2]


def test_a_write_that_began_leaves_its_lanes_to_others_as_soon_as_it_is_unknown(rig: Rig) -> None:
    rig.running(effect="local_write", lanes='["a"]')
    rig.run("call_start")
    rig.run("leases_lapse", **absent(rig))
    rig.pass_ms(2_999)
    assert lanes_until(rig) > rig.now_ms
    rig.pass_ms(2)
    assert rig.run("call_give_up", status="unknown") == ["SETTLED"]
    assert lanes_until(rig) == 0


def test_lanes_that_a_function_beats_for_elsewhere_stay_its_own(rig: Rig) -> None:
    rig.running(effect="local_write", lanes='["a"]')
    gone = absent(rig)
    assert rig.run("lane_beat", holder="s1 t01 c1-0") == ["OK"]
    rig.run("leases_lapse", **gone)
    assert lanes_until(rig) == rig.now_ms + LEASE_MS


def test_a_write_that_began_has_one_beat_to_say_that_it_lives(rig: Rig) -> None:
    rig.running(effect="local_write")
    assert rig.run("call_start") == ["OK"]
    assert rig.run("leases_lapse", **absent(rig)) == ["LAPSED", 1]
    assert lease(rig) == rig.now_ms + 3_000
    assert rig.look_in_ms() == 3_000
    assert rig.run("turn_sweep")[2] == ""
    rig.pass_ms(3_001)
    assert "rescue c1-0 1" in rig.run("turn_sweep")[2]


def test_a_beat_within_that_time_keeps_the_write(rig: Rig) -> None:
    rig.running(effect="local_write")
    rig.run("call_start")
    rig.run("leases_lapse", **absent(rig))
    assert rig.run("call_beat") == ["OK"]
    rig.pass_ms(3_001)
    assert rig.run("turn_sweep")[2] == ""


def test_a_lease_that_would_end_sooner_is_not_made_longer(rig: Rig) -> None:
    rig.running(effect="local_write")
    rig.run("call_start")
    gone = absent(rig, LEASE_MS - 2_000)
    before = lease(rig)
    assert rig.run("leases_lapse", **gone) == ["NONE"]
    assert lease(rig) == before


def test_the_step_of_a_finalizer_is_rung_for_again(rig: Rig) -> None:
    rig.finalizing()
    rig.bells(FINALIZE_QUEUE)
    assert rig.run("leases_lapse", **absent(rig)) == ["LAPSED", 1]
    rig.run("turn_sweep")
    assert len(rig.bells(FINALIZE_QUEUE)) == 1


def test_a_turn_that_is_gone_holds_nothing(rig: Rig) -> None:
    assert rig.run("leases_lapse", tid="t99", **absent(rig)) == ["NONE"]


def test_a_claim_that_lives_ends_its_own_call_and_no_other(rig: Rig) -> None:
    rig.running(effect="local_write")
    assert rig.run("leases_lapse", process="2@w1", absent_at=NEVER_RENEWED_MS) == ["NONE"]
    assert rig.run("leases_lapse", process="w1", absent_at=NEVER_RENEWED_MS) == ["LAPSED", 1]
    assert lease(rig) == rig.now_ms
    assert rig.look_in_ms() == 0


# What attempts at a step are charged as that bring no reply, in all scripts that charge them.


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


# quarantine_wait.lua: a suspect waits for a place in quarantine, and its time stands still.


ANY = 1_000_000


@pytest.fixture
def suspect(rig: Rig) -> Rig:
    """A turn that nobody holds and that has all its time."""
    rig.owned()
    rig.client.hset(rig.names(TID)["turn"], mapping={"lost_attempts": 2, "owner": ""})
    rig.bells(TURNS_QUEUE)
    return rig


def wait(rig: Rig, after_ms: int = LEASE_MS) -> str:
    return rig.run("quarantine_wait", after_ms=after_ms)[0]


def left_ms(rig: Rig) -> int:
    return int(rig.client.hget(rig.names(TID)["budget"], "deadline")) - rig.now_ms


def claim(rig: Rig) -> str:
    return rig.run("turn_claim", owner="1@h-1", fence=1, most_lost=ANY)[0]


@pytest.mark.parametrize("step", ["0", "3"])
def test_its_time_stands_still_until_it_has_its_place(suspect: Rig, step: str) -> None:
    suspect.client.hset(suspect.names(TID)["turn"], "step", step)
    for _ in range(5):
        assert wait(suspect) == "WAITS"
        suspect.pass_ms(3_000)
    assert claim(suspect) == "GO"
    assert left_ms(suspect) == TIMEOUT_MS
    assert "waits_for" not in suspect.turn()
    suspect.pass_ms(1_000)
    assert left_ms(suspect) == TIMEOUT_MS - 1_000


def test_nobody_rings_while_it_waits_and_the_sweeper_does_when_nobody_says_so_any_more(suspect: Rig) -> None:
    wait(suspect)
    suspect.pass_ms(3_000)
    wait(suspect)
    suspect.pass_ms(LEASE_MS - 1_000)
    suspect.run("turn_sweep")
    assert suspect.bells(TURNS_QUEUE) == []
    assert suspect.look_in_ms() == 1_000
    suspect.pass_ms(1_000)
    suspect.run("turn_sweep")
    assert len(suspect.bells(TURNS_QUEUE)) == 1
    suspect.pass_ms(500)
    assert claim(suspect) == "GO"
    assert left_ms(suspect) == TIMEOUT_MS - 500


def test_it_stands_still_for_as_long_as_the_turn_has_at_most(suspect: Rig) -> None:
    waited_ms = 0
    while left_ms(suspect) > 0:
        assert wait(suspect) == "WAITS"
        suspect.pass_ms(3_000)
        waited_ms += 3_000
    assert TIMEOUT_MS * 2 - LEASE_MS <= waited_ms <= TIMEOUT_MS * 2 + 3_000
    assert wait(suspect) == "GONE"


def test_what_is_not_its_time_to_wait(suspect: Rig) -> None:
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
    suspect.run("turn_claim", owner="w2", fence=1, most_lost=ANY)
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
    suspect.pass_ms(LEASE_MS)
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["WAITS"]
    suspect.run("turn_cancel")
    assert suspect.run("quarantine_wait", after_ms=LEASE_MS, fence=2) == ["GONE"]
