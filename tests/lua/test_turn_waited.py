"""turn_waited.lua: a turn that waited for longer than it may ends before it begins."""

from __future__ import annotations

from tests.lua.rig import TID, Rig

WAIT_MS = 5_000


def sweep(rig: Rig, tid: str = "t02") -> str:
    return rig.run("turn_sweep", tid=tid)[2]


def test_its_wait_is_over_when_it_has_waited_so_long(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02", max_wait_ms=WAIT_MS)
    rig.run("mailbox_put", tid="t02", item='{"client_message_id":"m1"}')
    assert rig.look_in_ms("t02") == WAIT_MS + 1
    rig.pass_ms(WAIT_MS - 1)
    assert rig.run("turn_waited", tid="t02") == ["NONE"]
    assert sweep(rig) == ""
    rig.pass_ms(1)
    assert sweep(rig) == "waited"
    assert rig.run("turn_waited", tid="t02", text="too late") == ["ENDED"]
    ended = rig.turn("t02")
    assert [ended[name] for name in ("state", "ending", "stop_reason", "text")] == [
        *("closing", "timed_out", "waited", "too late")
    ]
    assert rig.client.hgetall(rig.names("t02")["receipts"]) == {"m1": "bounced"}
    assert rig.client.llen(rig.names(TID)["waiting"]) == 0
    assert rig.bells("brainq.finalize") == [["s1", "t02", "log"]]
    assert rig.turn()["state"] == "active", "the live one goes on"


def test_one_that_waits_for_room_is_not_begun_by_the_sweep_that_finds_it(rig: Rig) -> None:
    rig.run("capacity_keep", size=1, share=1, own="{}", caps="{}", cap_ms=60_000, most=9, keep_ms=600_000)
    rig.active()
    rig.run("turn_submit", sid="s2", tid="t02", max_wait_ms=WAIT_MS)
    rig.client.delete(rig.keys.room_live)
    rig.pass_ms(WAIT_MS)
    assert rig.run("turn_sweep", sid="s2", tid="t02")[2] == "waited"
    assert rig.run("turn_waited", sid="s2", tid="t02") == ["ENDED"]
    assert rig.client.zcard(rig.keys.room_line("s2")) == 0
    assert rig.lifetimes()[rig.names("t02", "s2")["turn"]] == -1, "its finalizer ends its keys"


def test_a_turn_that_has_begun_has_waited_enough(rig: Rig) -> None:
    rig.active(max_wait_ms=WAIT_MS)
    rig.pass_ms(WAIT_MS + 1)
    assert sweep(rig, TID) == ""
    assert rig.run("turn_waited") == ["NONE"]
    assert rig.turn()["state"] == "active"


def test_a_turn_without_the_limit_waits_as_long_as_it_takes(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.pass_ms(86_400_000)
    assert sweep(rig) == ""
    assert rig.run("turn_waited", tid="t02") == ["NONE"]
