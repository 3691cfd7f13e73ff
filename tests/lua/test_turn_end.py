"""turn_end.lua: the one ending."""

from __future__ import annotations

from tests.lua.rig import TID, WRITE, Rig


def test_the_ending_stands_and_the_finalizer_is_rung(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_end", item='{"role":"assistant"}') == ["ENDED", "", ""]
    assert (rig.turn()["state"], rig.turn()["ending"], rig.turn()["owner"]) == ("closing", "completed", "")
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]
    assert rig.history() == [{"role": "assistant"}]


def test_the_sessions_next_turn_starts(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02")
    rig.bells("brainq.turns")
    assert rig.run("turn_end")[1] == "t02"
    assert rig.turn("t02")["state"] == "active"
    assert rig.bells("brainq.turns") == [["s1", "t02", 0]]
    assert rig.client.pttl(rig.names(TID)["session"]) == -1


def test_a_session_without_another_turn_gets_its_lifetime(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_begin", items=["{}"])
    rig.run("turn_end")
    for part in ("session", "history"):
        assert 0 < rig.client.pttl(rig.names(TID)[part]) <= 100_000


def test_open_calls_get_their_message_in_order(rig: Rig) -> None:
    rig.committed({}, {"index": 1}, {"index": 2, "wave": 2, **WRITE})
    rig.run("call_claim", call="c1-1")
    rig.run("call_settle", call="c1-1", message='{"role":"tool","call_id":"c1-1"}')
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2, ending="cancelled") == ["ENDED", "", "c1-2"]
    assert [message.get("call_id") for message in rig.history()] == [None, "c1-0", "c1-1", "c1-2"]
    assert [rig.status(f"c1-{n}") for n in range(3)] == ["cancelled", "completed", "cancelled"]


def test_a_call_that_runs_keeps_its_lanes(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2)[2] == ""


def test_only_the_owner_ends_it(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_end", fence=0) == ["LOST"]
    assert rig.run("turn_end", owner="w2") == ["LOST"]
    assert rig.turn()["state"] == "active"
