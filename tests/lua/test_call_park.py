"""call_park.lua: a call waits for a result from outside."""

from __future__ import annotations

from tests.lua.rig import TID, WRITE, Rig


def test_the_last_open_call_parks_the_turn(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("call_park", found='["source"]', changed='["row"]') == ["PARKED"]
    assert rig.status() == "parked"
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "outside")
    assert rig.events()[-2:] == ["call.parked", "turn.parked"]
    assert rig.client.lrange(rig.names(TID)["sources"], 0, -1) == ["source"]
    assert rig.client.lrange(rig.names(TID)["changes"], 0, -1) == ["row"]


def test_beside_a_call_that_runs_the_turn_goes_on(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    for call in ("c1-0", "c1-1"):
        rig.run("call_claim", call=call)
    rig.run("call_park")
    assert rig.turn()["state"] == "active"
    rig.run("call_settle", call="c1-1")
    assert rig.turn()["state"] == "parked"


def test_a_result_that_came_before_settles_the_call_at_once(rig: Rig) -> None:
    rig.running()
    assert rig.run("outside_complete", message='{"role":"tool","n":7}', retryable="1") == ["EARLY"]
    assert rig.run("call_park") == ["SETTLED"]
    assert rig.status() == "completed"
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:retryable") == "1"
    assert rig.history()[-1] == {"role": "tool", "n": 7}
    assert rig.run("outside_complete") == ["USED"]


def test_an_early_result_for_another_token_is_none_of_its_own(rig: Rig) -> None:
    rig.running()
    rig.run("outside_complete", token="k0")
    assert rig.run("call_park")[0] == "PARKED"


def test_only_who_runs_it_parks_it_and_only_in_an_open_turn(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_park", owner="w2") == ["LOST", "running"]
    assert rig.run("call_park", attempt=2) == ["LOST", "running"]
    assert rig.run("call_park", call="c9-9") == ["LOST", "gone"]
    rig.run("gate_shut")
    assert rig.run("call_park") == ["LATE", "running"]


def test_a_cancelled_turn_is_not_parked_by_it_but_rung(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    rig.bells("brainq.turns")
    assert rig.run("call_park") == ["PARKED"]
    assert rig.turn()["state"] == "active"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
