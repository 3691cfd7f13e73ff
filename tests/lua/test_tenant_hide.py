"""tenant_hide.lua: a session that nothing changes while it is copied."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import SID, TID, WRITE, Rig

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
