"""The scripts of sessions: pauses, and the mailbox of the turn that is open."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import TID, Rig, planned

# session_pause.lua: no further turn begins.


def test_turns_wait_in_a_paused_session(rig: Rig) -> None:
    assert rig.run("session_pause", why="first") == ["PAUSED"]
    assert rig.run("session_pause", why="second") == ["ALREADY"]
    kept = rig.client.hmget(rig.names(TID)["session"], "paused_why", "paused_at")
    assert kept[0] == "first"
    assert int(str(kept[1])) > 0
    assert 0 < rig.client.pttl(rig.names(TID)["session"]) <= 100_000
    assert rig.run("turn_submit") == ["QUEUED", 1, ""]
    assert rig.client.pttl(rig.names(TID)["session"]) == -1


def test_a_live_turn_goes_on_and_the_next_does_not_begin(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02")
    rig.run("session_pause")
    assert rig.run("turn_end")[:2] == ["ENDED", ""]
    assert rig.turn("t02")["state"] == "queued"
    assert rig.client.pttl(rig.names(TID)["session"]) == -1


def test_when_the_last_that_waited_is_dropped_the_session_has_its_lifetime_again(rig: Rig) -> None:
    rig.run("session_pause")
    rig.run("turn_submit")
    assert rig.run("turn_cancel") == ["CANCELLED"]
    assert 0 < rig.client.pttl(rig.names(TID)["session"]) <= 100_000


# session_resume.lua: turns begin again.


def test_the_first_that_waits_begins(rig: Rig) -> None:
    rig.run("session_pause")
    rig.run("turn_submit")
    rig.run("turn_submit", tid="t02")
    assert rig.run("session_resume") == ["RESUMED", "t01"]
    assert (rig.turn()["state"], rig.turn("t02")["state"]) == ("active", "queued")
    assert rig.bells("brainq.turns") == [["s1", "t01", 0]]
    assert rig.run("session_resume") == ["ALREADY"]


def test_beside_a_live_turn_nothing_begins(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("session_pause")
    assert rig.run("session_resume") == ["RESUMED", ""]
    assert rig.turn("t02")["state"] == "queued"


def test_where_none_waits_it_only_is_no_longer_paused(rig: Rig) -> None:
    assert rig.run("session_resume") == ["ALREADY"]
    rig.run("session_pause")
    assert rig.run("session_resume") == ["RESUMED", ""]
    assert rig.client.hmget(rig.names(TID)["session"], "paused", "paused_at", "paused_why") == [None] * 3


# turn_open.lua: the wave before the first step.


def opening(*calls: dict[str, Any]) -> str:
    return json.dumps([{**planned(**call), "id": f"c0-{place}"} for place, call in enumerate(calls)])


def opened(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_begin", items=['{"role":"user"}'])
    rig.bells("brainq.turns")
    assert rig.run("turn_open", calls=opening({"fp": ""}, {"fp": ""})) == ["OPENED"]


def test_its_calls_are_dispatched_and_the_owner_is_done(rig: Rig) -> None:
    opened(rig)
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c0-0", 1], ["s1", "t01", "c0-1", 1]]
    assert (rig.turn()["awaits"], rig.turn()["owner"], rig.turn()["step"]) == ("calls", "", "0")
    assert rig.client.hget(rig.names(TID)["budget"], "tool_calls_used") is None


def test_its_results_stay_in_the_trace_and_ring_the_first_step(rig: Rig) -> None:
    opened(rig)
    for call in ("c0-0", "c0-1"):
        rig.run("call_claim", call=call)
        assert rig.run("call_settle", call=call, message='{"role":"tool","content":"found"}')[0] == "SETTLED"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.history() == [{"role": "user"}]
    assert json.loads(rig.client.hget(rig.names(TID)["trace"], "c0-1:msg"))["content"] == "found"


def test_a_turn_that_ends_meanwhile_keeps_them_out_of_the_history(rig: Rig) -> None:
    opened(rig)
    rig.run("turn_cancel")
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.run("turn_end", owner="w2", fence=2, ending="cancelled")[0] == "ENDED"
    assert [rig.status(call) for call in ("c0-0", "c0-1")] == ["cancelled", "cancelled"]
    assert rig.history() == [{"role": "user"}]


def test_once_and_only_by_the_owner(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_open", fence=0, calls="[]") == ["LOST"]
    assert rig.run("turn_open", owner="w2", calls="[]") == ["LOST"]
    assert rig.run("turn_open", calls=opening({})) == ["OPENED"]
    rig.run("call_claim", call="c0-0")
    rig.run("call_settle", call="c0-0")
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.run("turn_open", owner="w2", fence=2, calls=opening({})) == ["ALREADY"]


# mailbox_put.lua: input for a turn that lives.


ITEM = '{"client_message_id":"m1","text":"more"}'


def test_input_is_accepted_once(rig: Rig) -> None:
    rig.active()
    assert rig.run("mailbox_put", item=ITEM) == ["ACCEPTED"]
    assert rig.run("mailbox_put", item="other") == ["ALREADY", "accepted", "active"]
    assert rig.client.lrange(rig.names(TID)["mailbox"], 0, -1) == [ITEM]
    assert rig.events().count("input.accepted") == 1


def test_a_turn_that_waits_takes_it_too(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    assert rig.run("mailbox_put", tid="t02", item=ITEM) == ["ACCEPTED"]


def test_a_turn_that_is_over_is_sealed(rig: Rig) -> None:
    assert rig.run("mailbox_put", item=ITEM) == ["GONE"]
    rig.closing()
    assert rig.run("mailbox_put", item=ITEM) == ["SEALED", "closing"]
    assert rig.client.exists(rig.names(TID)["receipts"]) == 0


def test_the_same_input_again_gets_its_receipt_after_the_end(rig: Rig) -> None:
    rig.owned()
    rig.run("mailbox_put", item=ITEM)
    rig.run("turn_end", stop_reason="max_steps")
    assert rig.run("mailbox_put", item=ITEM) == ["ALREADY", "bounced", "closing"]


def test_a_mailbox_takes_so_many_inputs_that_nobody_has_read(rig: Rig) -> None:
    rig.owned()
    for number in range(2):
        assert rig.run("mailbox_put", message_id=f"m{number}", item='{"client_message_id":"m"}', most=2) == ["ACCEPTED"]
    assert rig.run("mailbox_put", message_id="m2", item="{}", most=2) == ["FULL", 2, 50]
    assert rig.run("mailbox_put", message_id="m1", item="{}", most=2) == ["ALREADY", "accepted", "active"]
    rig.run("step_begin", drain=1)
    assert rig.turn()["mail_bytes"] == "25"
    assert rig.run("mailbox_put", message_id="m2", item="{}", most=2) == ["ACCEPTED"]


def test_a_mailbox_takes_so_many_bytes_and_any_one_input(rig: Rig) -> None:
    rig.owned()
    assert rig.run("mailbox_put", message_id="m1", item="x" * 100, most_bytes=50) == ["ACCEPTED"]
    assert rig.run("mailbox_put", message_id="m2", item="x", most_bytes=50) == ["FULL", 1, 100]


def test_a_tenant_that_is_in_another_cell_or_about_to_be_is_sent_nothing(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.keys.moved, mapping={"acme:": "b 3", "globex:": " 2"})
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="acme:") == ["MOVED", "b", "3"]
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="globex:") == ["MOVING"]
    assert rig.client.exists(rig.names(TID)["mailbox"], rig.names(TID)["receipts"]) == 0
    assert rig.run("mailbox_put", item=ITEM, cell_tenant="umbrella:") == ["ACCEPTED"]


# turn_messages.lua: the messages of a turn that has ended.


def test_they_are_those_that_the_transcript_has(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "old")
    assert rig.run("turn_messages") == ["SAID"]
    rig.owned()
    rig.run("turn_begin", items=["asked"])
    rig.run("turn_end", item="answered", ending="completed", stop_reason="answered")
    rig.client.rpush(rig.names(TID)["history"], "of the next turn")
    assert rig.run("turn_messages") == ["SAID", "asked", "answered"]
    assert rig.run("turn_messages", most=1) == ["SAID", "answered"]
    _, _, _, *transcript = rig.run("turn_transcript")
    assert transcript == ["asked", "answered"]


def test_a_review_has_a_history_of_its_own(rig: Rig) -> None:
    rig.client.rpush(rig.names(TID)["history"], "of the session")
    rig.owned(turn_kind="review", isolated="1")
    rig.run("turn_begin", items=["seed", "asked"])
    assert rig.run("turn_messages") == ["SAID", "asked"]
