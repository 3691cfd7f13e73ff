"""outside_complete.lua: the result of a parked call, once."""

from __future__ import annotations

import json

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig


def parked(rig: Rig, **call: str) -> None:
    rig.running(**call)
    assert rig.run("call_park")[0] == "PARKED"


def test_the_turn_goes_on_and_its_deadline_has_stood_still(rig: Rig) -> None:
    parked(rig)
    rig.pass_ms(5_000)
    rig.bells("brainq.turns")
    assert rig.run("outside_complete", message='{"role":"tool","n":1}') == ["SETTLED"]
    assert (rig.status(), rig.turn()["state"], rig.turn()["parked_ms"]) == ("completed", "active", "5000")
    deadline = rig.client.hget(rig.names(TID)["budget"], "deadline")
    assert int(deadline) == rig.now_ms + TIMEOUT_MS
    assert rig.history()[-1] == {"role": "tool", "n": 1}
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_a_token_is_used_once_and_no_other_will_do(rig: Rig) -> None:
    parked(rig)
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.run("outside_complete")[0] == "SETTLED"
    assert rig.run("outside_complete", status="failed") == ["USED"]
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.status() == "completed"


def test_a_call_that_is_unknown_or_did_not_start_takes_nothing(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("outside_complete", call="c9-9") == ["GONE"]
    assert rig.run("outside_complete") == ["BAD"]


def test_before_the_function_returns_it_is_kept_once(rig: Rig) -> None:
    rig.running()
    assert rig.run("outside_complete") == ["EARLY"]
    assert rig.run("outside_complete") == ["USED"]
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.status() == "running"


def test_a_write_that_comes_too_late_is_told_to_the_model(rig: Rig) -> None:
    parked(rig, **WRITE)
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert rig.status() == "unknown"
    assert rig.run("outside_complete", notice="it was done") == ["LATE", "unknown"]
    assert rig.client.lrange(rig.names(TID)["notices"], 0, -1) == ["it was done"]
    assert rig.client.pttl(rig.names(TID)["notices"]) > 0


def test_in_a_cancelled_turn_it_settles_and_opens_nothing(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2})
    rig.run("call_claim")
    rig.run("call_park")
    rig.run("turn_cancel")
    assert rig.run("outside_complete") == ["SETTLED"]
    assert rig.status("c1-1") == "planned"


def test_what_a_child_used_is_paid_once(rig: Rig) -> None:
    parked(rig)
    used = {
        "input_tokens": 7,
        "output_tokens": 2,
        "cache_read_tokens": 0,
        "cache_creation_tokens": 0,
        "cost": "0.5",
        "spend": '{"kind":"child"}',
    }
    before = int(rig.client.hget(rig.names(TID)["budget"], "input_tokens"))
    rig.run("outside_complete", spent=json.dumps(used))
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (int(budget["input_tokens"]), budget["cost_usd"]) == (before + 7, "0.5")
    assert rig.client.lrange(rig.names(TID)["spends"], -1, -1) == ['{"kind":"child"}']


def test_p4_a_result_that_its_call_was_cut_off_before_it_could_take_is_told(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("outside_complete", known="1", notice='{"it": "was done"}') == ["EARLY"]
    assert rig.run("call_settle", status="timed_out")[0] == "SETTLED"
    assert rig.status() == "timed_out"
    assert rig.client.lrange(rig.keys.of_session("s1", "notices"), 0, -1) == ['{"it": "was done"}']
