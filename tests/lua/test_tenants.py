"""The scripts of a tenant's move."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import SID, TID, WRITE, Rig

# tenant_hide.lua: a session that nothing changes while it is copied.


PARTS = {
    "session_parts": "flags history notices outbox readiness session waiting",
    "turn_parts": "- blocked budget changes events guard history mailbox receipts result sources spec spends trace",
}


def hide(rig: Rig) -> list[Any]:
    return rig.run("tenant_hide", **PARTS)


def hidden(rig: Rig) -> list[str]:
    return sorted(rig.client.keys(f"{rig.keys.session(SID)}moving:*"))


def parked(rig: Rig) -> None:
    """With a turn that waits for an approval, and one behind it."""
    rig.committed(WRITE | {"ask": "1", "ask_ms": 60_000})
    rig.run("turn_submit", tid="t02")
    if rig.turn()["state"] != "parked":
        rig.client.hset(rig.names(TID)["turn"], mapping={"state": "parked", "awaits": "calls"})


def show(rig: Rig, *turns: str) -> None:
    assert rig.run("tenant_show", awaits=" ".join(turns), hidden=hidden(rig)) == ["SHOWN"]


def test_turns_that_wait_are_out_of_reach_and_back_as_they_were(rig: Rig) -> None:
    parked(rig)
    before = {name: rig.client.dump(name) for name in rig.client.keys(f"{rig.keys.session(SID)}*")}
    assert hide(rig) == ["HIDDEN"]
    assert rig.client.keys(f"{rig.keys.session(SID)}[^m]*") == []
    assert rig.run("turn_claim", fence=0)[0] == "DROP"
    assert rig.run("turn_cancel") == ["GONE"]
    assert rig.run("session_resume") == ["ALREADY"]
    assert rig.run("outside_complete", known="1") == ["GONE"]
    show(rig, TID, "t02")
    assert {name: rig.client.dump(name) for name in rig.client.keys(f"{rig.keys.session(SID)}*")} == before


def test_a_turn_that_is_worked_on_is_left_where_it_is(rig: Rig) -> None:
    rig.owned()
    assert hide(rig) == ["BUSY", TID]
    assert hidden(rig) == []


def test_what_ended_keeps_its_name(rig: Rig) -> None:
    rig.closing()
    assert hide(rig) == ["HIDDEN"]
    assert rig.turn()["state"] == "closing"
    assert f"{rig.keys.session(SID)}moving:session" in hidden(rig)


def test_hidden_keys_outlive_what_took_their_names_meanwhile(rig: Rig) -> None:
    parked(rig)
    hide(rig)
    rig.run("session_pause")
    assert hide(rig) == ["HIDDEN"]
    assert rig.client.hget(f"{rig.keys.session(SID)}moving:session", "live") == TID
    show(rig, TID, "t02")
    assert rig.client.hget(rig.names(TID)["session"], "live") == TID
    assert rig.turn("t02")["state"] == "queued"


# tenant_show.lua: a session that was hidden goes on.


def test_what_is_shown_is_looked_at_soon(rig: Rig) -> None:
    parked(rig)
    hide(rig)
    rig.client.delete(rig.keys.index)
    assert rig.run("tenant_show", awaits=f"{TID} t02 gone", hidden=hidden(rig)) == ["SHOWN"]
    assert rig.look_in_ms(TID) == rig.look_in_ms("t02") == 1000
    assert rig.client.zcard(rig.keys.index) == 2


def test_what_is_not_there_any_more_is_left_out(rig: Rig) -> None:
    gone = f"{rig.keys.session(SID)}moving:session"
    assert rig.run("tenant_show", awaits="", hidden=[gone]) == ["SHOWN"]
    assert rig.client.exists(rig.names(TID)["session"]) == 0


# moved_word.lua: what scripts are told of a tenant that is not here.


def test_a_word_is_written_changed_and_taken_away(rig: Rig) -> None:
    assert rig.run("moved_word", tenant="acme:", before="", after=" 2") == ["DONE"]
    assert rig.run("moved_word", tenant="acme:", before=" 2", after="b 2") == ["DONE"]
    assert rig.client.hgetall(rig.keys.moved) == {"acme:": "b 2"}
    assert rig.run("moved_word", tenant="acme:", before="b 2", after="") == ["DONE"]
    assert rig.client.exists(rig.keys.moved) == 0


def test_one_that_another_has_changed_stays(rig: Rig) -> None:
    rig.client.hset(rig.keys.moved, "acme:", "b 2")
    assert rig.run("moved_word", tenant="acme:", before="", after=" 3") == ["CHANGED", "b 2"]
    assert rig.run("moved_word", tenant="acme:", before=" 2", after="") == ["CHANGED", "b 2"]
    assert rig.client.hgetall(rig.keys.moved) == {"acme:": "b 2"}
