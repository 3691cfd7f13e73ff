"""turn_end.lua: the one ending."""

from __future__ import annotations

import json

from tests.lua.rig import LEASE_MS, TID, WRITE, Rig, planned
from tests.lua.test_stay import staying


def test_the_ending_stands_and_the_finalizer_is_rung(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_end", item='{"role":"assistant"}') == ["ENDED", "", "", ""]
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
    assert rig.run("turn_end", fence=2, ending="cancelled") == ["ENDED", "", "", ""]
    assert [message.get("call_id") for message in rig.history()] == [None, "c1-0", "c1-1", "c1-2"]
    assert [rig.status(f"c1-{n}") for n in range(3)] == ["cancelled", "completed", "cancelled"]


def test_a_call_that_runs_keeps_its_lanes(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("turn_cancel")
    assert rig.run("turn_claim", fence=1) == ["DROP", "grace"]
    rig.pass_ms(2000)
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2, ending="cancelled")[2] == ""
    assert rig.status() == "unknown"


def test_only_the_owner_ends_it(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_end", fence=0) == ["LOST"]
    assert rig.run("turn_end", owner="w2") == ["LOST"]
    assert rig.turn()["state"] == "active"


def put(rig: Rig, message_id: str = "m1") -> None:
    rig.run("mailbox_put", message_id=message_id, item=f'{{"client_message_id":"{message_id}"}}')


ANSWER = '{"role":"assistant"}'


def test_input_that_came_with_the_answer_is_read_by_another_step(rig: Rig) -> None:
    rig.owned()
    put(rig)
    before = rig.turn()
    assert rig.run("turn_end", item=ANSWER) == ["MORE"]
    assert rig.turn() == before


def test_input_no_step_can_read_is_bounced_in_order(rig: Rig) -> None:
    rig.owned()
    put(rig, "m2")
    put(rig, "m1")
    assert rig.run("turn_end", stop_reason="max_steps")[2] == "m2 m1"
    assert rig.client.hgetall(rig.names(TID)["receipts"]) == {"m1": "bounced", "m2": "bounced"}
    assert rig.client.exists(rig.names(TID)["mailbox"]) == 0
    assert rig.events()[-3:] == ["input.bounced", "input.bounced", "turn.closing"]


def test_when_steps_or_time_are_used_up_or_it_is_cancelled_there_is_no_more(rig: Rig) -> None:
    for given in ({"steps_used": 2}, {"deadline": 1}, {"deadline": rig.now_ms + 900}):
        rig.client.flushdb()
        rig.pass_ms(0)
        rig.owned()
        put(rig)
        rig.client.hset(rig.names(TID)["budget"], mapping=given)
        assert rig.run("turn_end", item=ANSWER)[2] == "m1"
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.owned()
    put(rig)
    rig.client.hset(rig.names(TID)["turn"], "cancel", "1")
    assert rig.run("turn_end", item=ANSWER)[2] == "m1"


def test_a_compaction_that_is_done_reads_nothing_more(rig: Rig) -> None:
    rig.owned(turn_kind="compact")
    put(rig)
    assert rig.run("turn_end", text="The conversation was compacted.")[2] == "m1"


def test_the_diff_is_of_all_changes_or_it_is_made_again(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_settle", changed='["row"]')
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2) == ["CHANGED"]
    assert rig.run("turn_end", fence=2, n_changes=1, diff="--- a")[0] == "ENDED"
    assert rig.turn()["diff"] == "--- a"
    assert rig.events()[-2:] == ["turn.diff", "turn.closing"]


def test_a_write_that_may_have_begun_is_unknown_and_one_that_did_not_is_cancelled(rig: Rig) -> None:
    rig.committed({**WRITE, "wave": 1}, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim")
    rig.run("call_park", why="outside")
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert (rig.status("c1-0"), rig.status("c1-1")) == ("unknown", "cancelled")
    assert "Whether it took effect is not known." in rig.history()[-2]["content"]


def test_nor_is_a_lost_attempt_of_an_idempotent_write_called_cancelled(rig: Rig) -> None:
    rig.running(again="1", **WRITE)
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_next_attempt")[0] == "AGAIN"
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert rig.status() == "unknown"


def test_children_that_nobody_waits_for_are_named(rig: Rig) -> None:
    rig.running()
    rig.run("call_park", why="child", token="ch-1")
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    assert rig.run("turn_end", fence=2, ending="cancelled") == ["ENDED", "", "", "ch-1"]


def test_a_review_leaves_only_its_outcome_to_the_session(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    rig.run("turn_begin", items=['{"n":"asked"}'])
    assert rig.run("turn_end", item=ANSWER, outcome='{"n":"outcome"}')[0] == "ENDED"
    assert rig.history() == [{"n": "outcome"}]
    assert rig.client.lrange(rig.names(TID)["turn"] + ":history", 0, -1) == ['{"n":"asked"}', ANSWER]
    assert rig.client.pttl(rig.names(TID)["history"]) > 0


def test_in_a_paused_session_the_next_one_waits(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02")
    rig.run("session_pause")
    assert rig.run("turn_end")[1] == ""
    assert rig.turn("t02")["state"] == "queued"
    assert rig.client.hget(rig.names(TID)["session"], "live") == ""


def test_after_the_turns_of_a_session_nothing_is_left(rig: Rig) -> None:
    for flag in ("f1", "f2", "f3"):
        rig.run("flag_add", flag=flag, timeout_ms=60_000)
    for tid, kind, isolated in (("t01", "chat", ""), ("t02", "review", "1"), ("t03", "chat", "")):
        rig.run("turn_submit", tid=tid, turn_kind=kind, isolated=isolated)
    for tid in ("t01", "t02", "t03"):
        rig.run("turn_claim", tid=tid, fence=0)
        rig.run("turn_begin", tid=tid, items=["{}"])
        rig.run("step_commit", tid=tid, item="{}", calls=json.dumps([planned()]))
        rig.run("call_claim", tid=tid)
        rig.run("call_settle", tid=tid, found='["source"]', changed='["row"]', block="1")
        rig.run("mailbox_put", tid=tid, item='{"client_message_id":"m1"}')
        rig.run("turn_claim", tid=tid, fence=1)
        assert rig.run("turn_end", tid=tid, fence=2, n_changes=1, stop_reason="max_steps")[2] == "m1"
        rig.run("finalize_claim", tid=tid, step="log")
        rig.run("result_publish", tid=tid)
        own = f"{rig.names(tid)['turn']}:history"
        assert rig.run("finalize_finish", tid=tid, step="log", history=own) == ["FINISHED"]
    kept = [key for key in rig.client.keys("*{s1}*") if rig.client.pttl(key) == -1]
    assert kept == []


def test_its_thread_may_continue_with_the_first_finalizer_step(rig: Rig) -> None:
    rig.owned()
    reads = [["HGET", rig.names(TID)["turn"], "state"]]
    assert rig.run("turn_end", item=ANSWER, **staying(reads=reads, most=10)) == ["FINAL", "", "", "", "", "closing"]
    assert rig.run("turn_end", fence=0, **staying(owner="v2@w1", most=10)) == ["LOST"]
