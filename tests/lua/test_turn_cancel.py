"""turn_cancel.lua: the wish to stop."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_a_turn_that_waits_ends_at_once(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("turn_cancel", tid="t02") == ["CANCELLED"]
    assert rig.turn("t02")["ending"] == "cancelled"
    assert rig.client.llen(rig.names(TID)["waiting"]) == 0
    assert rig.bells("brainq.finalize") == [["s1", "t02", "log"]]


def test_a_live_turn_is_marked_and_rung_once(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    assert rig.run("turn_cancel") == ["REQUESTED"]
    assert rig.turn()["cancel"] == "1"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_what_ended_or_is_unknown_cannot_be_cancelled(rig: Rig) -> None:
    assert rig.run("turn_cancel") == ["GONE"]
    rig.closing()
    assert rig.run("turn_cancel") == ["ENDED", "closing"]


def test_only_a_turn_that_waits_where_that_is_asked(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_cancel", queued_only="1") == ["LIVE"]
    assert "cancel" not in rig.turn()
    rig.run("turn_submit", tid="t02")
    assert rig.run("turn_cancel", tid="t02", queued_only="1") == ["CANCELLED"]


def test_a_parked_turn_goes_on_to_its_end(rig: Rig) -> None:
    rig.running()
    rig.run("call_park")
    rig.pass_ms(700)
    rig.bells("brainq.turns")
    assert rig.run("turn_cancel") == ["REQUESTED"]
    assert [rig.turn()[name] for name in ("state", "awaits", "parked_ms")] == ["active", "calls", "700"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_calls_that_run_are_waited_for(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    rig.run("turn_cancel")
    assert rig.bells("brainq.turns") == []


def test_it_is_published_once(rig: Rig) -> None:
    rig.active()
    listener = rig.client.pubsub()
    listener.subscribe("stops")
    assert listener.get_message(timeout=5)["type"] == "subscribe"
    rig.run("turn_cancel")
    assert listener.get_message(timeout=5)["data"] == "s1 t01"
    assert listener.get_message() is None
    listener.close()


def test_input_of_a_turn_that_waited_is_bounced(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("mailbox_put", tid="t02", item='{"client_message_id":"m1"}')
    rig.run("turn_cancel", tid="t02")
    assert rig.client.hgetall(rig.names("t02")["receipts"]) == {"m1": "bounced"}
    assert rig.client.exists(rig.names("t02")["mailbox"]) == 0
    assert rig.events("t02")[-2:] == ["input.bounced", "turn.closing"]
