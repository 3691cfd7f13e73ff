"""leases_lapse.lua: what a process that is gone holds of a turn ends at once."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.celery.names import FINALIZE_QUEUE, TURNS_QUEUE
from brainq.adapters.redis.calls import NEVER_RENEWED_MS
from tests.lua.rig import LEASE_MS, Rig


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
