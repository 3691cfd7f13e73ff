"""turn_claim.lua: the ownership of a turn."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, TID, TIMEOUT_MS, Rig


def test_a_claim_raises_the_fence(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_claim", fence=0) == ["GO", 1, rig.now_ms, "0", "", "0"]
    assert (rig.turn()["owner"], rig.turn()["fence"]) == ("w1", "1")


@pytest.mark.parametrize(
    ("fields", "fence", "why"),
    [({}, 7, "stale"), ({"owner": "w9", "lease_until": 9 * 10**12}, 0, "held"), ({"awaits": "calls"}, 0, "awaits")],
)
def test_a_doorbell_is_dropped(rig: Rig, fields: dict[str, Any], fence: int, why: str) -> None:
    rig.active()
    if fields:
        rig.client.hset(rig.names(TID)["turn"], mapping=fields)
    assert rig.run("turn_claim", fence=fence) == ["DROP", why]


def test_a_turn_that_waits_ended_or_is_unknown_is_not_taken(rig: Rig) -> None:
    assert rig.run("turn_claim", fence=0) == ["DROP", "gone"]
    rig.closing()
    assert rig.run("turn_claim", fence=1) == ["DROP", "closing"]
    rig.active(tid="t02")
    rig.run("turn_submit", tid="t03")
    assert rig.run("turn_claim", tid="t03", fence=0) == ["DROP", "queued"]


def test_a_lapsed_lease_gives_the_turn_to_the_next(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", owner="w2", fence=1) == ["GO", 2, rig.now_ms, "1", "", "0"]


def test_a_cancel_and_a_deadline_long_passed_take_it_from_its_owner(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_cancel")
    assert rig.run("turn_claim", owner="w2", fence=1)[:2] == ["GO", 2]
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.owned(tid="t02")
    rig.pass_ms(TIMEOUT_MS + 2001)
    rig.client.hset(rig.names("t02")["turn"], "lease_until", rig.now_ms + 1000)
    assert rig.run("turn_claim", tid="t02", owner="w2", fence=1)[:2] == ["GO", 2]


def test_an_attempt_whose_owner_is_gone_is_charged_as_an_estimate(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", estimate=123)
    rig.pass_ms(LEASE_MS)
    rig.run("turn_claim", owner="w2", fence=1)
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "123"
    assert rig.turn()["lost_attempts"] == "1"


def test_notices_enter_the_history(rig: Rig) -> None:
    rig.active()
    rig.client.rpush(rig.names(TID)["notices"], '{"n": 1}', '{"n": 2}')
    rig.run("turn_claim", fence=0)
    assert rig.history() == [{"n": 1}, {"n": 2}]


def test_after_a_cancel_calls_that_run_have_a_grace(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    rig.pass_ms(1_999)
    assert rig.run("turn_claim", fence=1) == ["DROP", "grace"]
    rig.pass_ms(1)
    assert rig.run("turn_claim", fence=1)[:2] == ["GO", 2]


def test_when_none_runs_any_more_it_is_not_waited_out(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    rig.run("call_settle")
    assert rig.run("turn_claim", fence=1)[:2] == ["GO", 2]


def test_a_parked_turn_is_nobodys(rig: Rig) -> None:
    rig.running()
    rig.run("call_park")
    rig.pass_ms(2 * TIMEOUT_MS)
    assert rig.run("turn_claim", fence=1) == ["DROP", "parked"]


def test_notices_are_no_part_of_a_history_of_its_own(rig: Rig) -> None:
    rig.active(isolated="1", turn_kind="review")
    rig.client.rpush(rig.names(TID)["notices"], '{"n": 1}')
    rig.run("turn_claim", fence=0)
    assert rig.client.llen(rig.names(TID)["notices"]) == 1


def test_a_turn_that_lost_its_worker_again_and_again_goes_on_alone(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", owner="w2", fence=1)[:2] == ["GO", 2]
    rig.pass_ms(LEASE_MS)
    assert rig.run("turn_claim", owner="w3", fence=2) == ["DROP", "suspect"]
    rig.run("turn_sweep")
    assert rig.run("turn_claim", owner="w3", fence=2) == ["DROP", "suspect"]
    assert rig.run("turn_claim", owner="alone", fence=2, most_lost=1_000_000)[:2] == ["GO", 3]
    assert rig.turn()["lost_attempts"] == "2"


def test_it_counts_wherever_the_worker_was_lost_and_no_more_once_the_turn_went_on(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    rig.run("turn_claim", owner="w2", fence=1)
    assert rig.turn()["lost_attempts"] == "1"  # before any model was asked
    rig.commit(owner="w2", fence=2)
    assert rig.turn()["lost_attempts"] == "0"


def test_a_suspect_that_is_cancelled_or_past_its_deadline_is_anybodys(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["turn"], mapping={"lost_attempts": 5, "owner": ""})
    assert rig.run("turn_claim", owner="w2", fence=1) == ["DROP", "suspect"]
    rig.run("turn_cancel")
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"


def test_a_worker_takes_a_turn_of_a_brain_that_it_does_not_have_only_to_end_it(rig: Rig) -> None:
    rig.active(brain="lab")
    assert rig.run("turn_claim", fence=0, brains="laboratory") == ["DROP", "no_brain"]
    assert rig.turn()["fence"] == "0"
    rig.pass_ms(TIMEOUT_MS)
    assert rig.run("turn_claim", fence=0, brains="laboratory")[0] == "GO"


def test_a_cancelled_one_is_ended_by_anybody(rig: Rig) -> None:
    rig.active(brain="lab")
    rig.run("turn_cancel")
    assert rig.run("turn_claim", fence=0, brains="")[0] == "GO"
