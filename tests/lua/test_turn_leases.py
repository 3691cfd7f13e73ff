"""The scripts of a live turn's lease, of its start and of its end before its time."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import LEASE_MS, TID, Rig
from tests.support.money import FAR_MS, LINE

# turn_begin.lua: the user's message, once.


def test_the_message_enters_once_a_turn(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", items=['{"n": 1}', '{"n": 2}']) == ["BEGUN"]
    assert rig.run("turn_begin", items=['{"n": 3}']) == ["ALREADY"]
    assert rig.history() == [{"n": 1}, {"n": 2}]
    assert rig.client.hget(rig.names(TID)["session"], "turns") == "1"


def test_a_history_that_was_about_to_go_stays(rig: Rig) -> None:
    rig.owned()
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    rig.client.pexpire(rig.names(TID)["history"], 1000)
    rig.run("turn_begin", items=['{"n": 1}'])
    assert rig.client.pttl(rig.names(TID)["history"]) == -1


def test_only_the_owner_begins(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", fence=0, items=["{}"]) == ["LOST"]
    assert rig.run("turn_begin", owner="w2", items=["{}"]) == ["LOST"]
    assert rig.history() == []


def test_turns_of_a_session_redis_has_forgotten_are_counted_on(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_begin", earlier=7, items=["{}"]) == ["BEGUN"]
    assert rig.client.hget(rig.names(TID)["session"], "turns") == "8"
    assert rig.turn()["number"] == "8"


def test_a_review_begins_a_history_of_its_own(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    assert rig.run("turn_begin", items=['{"n": 1}']) == ["BEGUN"]
    assert rig.history() == [{"n": 0}]
    assert rig.client.lrange(rig.names(TID)["turn"] + ":history", 0, -1) == ['{"n": 1}']
    assert rig.turn()["begin_at"] == "0"


def test_a_history_that_begins_gets_a_stamp_of_its_own(rig: Rig) -> None:
    rig.owned()
    session = rig.names(TID)["session"]
    assert rig.run("turn_begin", items=["{}"]) == ["BEGUN"]
    assert int(str(rig.client.hget(session, "history_stamp"))) > 0


def test_a_history_that_goes_on_keeps_its_stamp(rig: Rig) -> None:
    rig.owned()
    session = rig.names(TID)["session"]
    rig.client.rpush(rig.names(TID)["history"], '{"n": 0}')
    rig.client.hset(session, "history_stamp", "7")
    assert rig.run("turn_begin", items=["{}"]) == ["BEGUN"]
    assert rig.client.hget(session, "history_stamp") == "7"


# turn_beat.lua: a turn's lease.


def test_the_owner_keeps_the_turn(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(3000)
    assert rig.run("turn_beat") == ["OK"]
    assert rig.turn()["lease_until"] == str(rig.now_ms + LEASE_MS)


def test_the_owner_hears_of_a_cancel(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_cancel")
    assert rig.run("turn_beat") == ["CANCEL"]


def test_whoever_lost_the_fence_hears_it(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_beat", fence=0) == ["LOST"]
    assert rig.run("turn_beat", owner="w2") == ["LOST"]
    rig.run("turn_end")
    assert rig.run("turn_beat") == ["LOST"]


# turn_park.lua: a turn waits for a budget, in its tenant's turn, and holds nothing.


def test_a_parked_turn_can_be_cancelled(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS)
    rig.run("turn_cancel")
    assert rig.turn()["state"] == "active"
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert rig.client.zcard(LINE) == 0


def test_tenants_take_turns_in_the_line(rig: Rig) -> None:
    for sid in ("acme:1", "acme:2", "beta:1"):
        rig.client.hset(rig.names(TID, sid)["turn"], mapping={"state": "active", "owner": "w1", "fence": 1})
        rig.run("turn_park", sid=sid, parked_line=LINE, after_ms=FAR_MS)
    assert rig.client.zrange(LINE, 0, -1) == [f"acme:1 {TID}", f"beta:1 {TID}", f"acme:2 {TID}"]


def test_only_the_owner_parks_it_and_it_keeps_its_place(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", owner="w2", parked_line=LINE, after_ms=FAR_MS) == ["LOST"]
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    assert rig.events()[-2:] == ["notice", "turn.parked"]
    assert rig.client.zcard(rig.keys.room_live) == 0, "its capacity is another's"
    place = rig.client.zscore(LINE, f"s1 {TID}")
    rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix)
    rig.run("turn_sweep")
    rig.run("turn_claim", fence=1)
    rig.run("turn_park", fence=2, parked_line=LINE, after_ms=FAR_MS)
    assert rig.client.zscore(LINE, f"s1 {TID}") == place


# turn_release.lua: an owner that lives lets its turn go.


def test_a_turn_that_is_let_go_has_lost_nobody(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(10)
    assert rig.client.delete(rig._queues["brainq.turns"]) == 1  # pyright: ignore[reportPrivateUsage]
    assert rig.once("turn_release") == ["RELEASED"]
    assert (rig.turn()["owner"], rig.turn()["rung_at"]) == ("", str(rig.now_ms))
    assert rig.run("turn_release") == ["GONE"]
    assert rig.run("turn_sweep")[0] == "LOOK"
    assert rig.bells("brainq.turns") == []
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.turn().get("lost_attempts", "0") == "0"


def test_an_owner_that_was_away_takes_it_back_that_it_was_lost(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    assert rig.turn()["lost_attempts"] == "1"
    assert rig.once("turn_release") == ["CLEARED"]
    assert rig.turn()["lost_attempts"] == "0"
    assert rig.run("turn_release") == ["GONE"]


def test_nobody_takes_back_what_another_lost(rig: Rig) -> None:
    rig.owned()
    rig.pass_ms(LEASE_MS)
    rig.run("turn_claim", owner="w2", fence=1)
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    assert rig.run("turn_release", owner="w1", fence=1) == ["GONE"]
    assert rig.turn()["lost_attempts"] == "2"


# turn_cancel.lua: the wish to stop.


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


# turn_transcript.lua: the messages of a turn.


def said(rig: Rig, **named: Any) -> list[str]:
    word, _, _, *messages = rig.run("turn_transcript", **named)
    assert word == "SAID"
    return messages


def test_they_are_found_where_they_are_after_others_were_trimmed_away(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "old-1", "old-2", "old-3")
    rig.owned()
    rig.run("turn_begin", items=["asked"])
    assert said(rig) == ["asked"]
    rig.run("turn_end", item="answered", ending="completed", stop_reason="answered")
    rig.client.rpush(rig.names(TID)["history"], "of the next turn")
    assert said(rig) == ["asked", "answered"]

    rig.client.ltrim(rig.names(TID)["history"], 2, -1)
    rig.client.hset(rig.names(TID)["session"], "trimmed", 2)
    assert said(rig) == ["asked", "answered"]
    assert said(rig, most=1) == ["answered"]
    rig.client.hset(rig.names(TID)["session"], "trimmed", 9)
    assert said(rig) == []


def test_a_turn_that_has_not_begun_said_nothing(rig: Rig) -> None:
    assert said(rig) == []
    rig.client.rpush(rig.names(TID)["history"], "old")
    rig.owned()
    assert said(rig) == []


def test_a_review_has_a_history_of_its_own(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "of the session")
    rig.owned(turn_kind="review", isolated="1")
    rig.run("turn_begin", items=["seed", "asked"])
    assert said(rig) == ["asked"]


def test_its_calls_and_receipts_are_told_with_it(rig: Rig) -> None:
    assert rig.run("turn_transcript") == ["SAID", [], []]
    rig.client.hset(rig.names(TID)["trace"], "c1-0:tool", "read_note")
    rig.client.hset(rig.names(TID)["receipts"], "m1", "consumed 2")
    assert rig.run("turn_transcript") == ["SAID", ["c1-0:tool", "read_note"], ["m1", "consumed 2"]]
