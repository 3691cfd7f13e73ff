"""call_settle.lua: how a call ended."""

from __future__ import annotations

from tests.lua.rig import TID, WRITE, Rig
from tests.lua.test_stay import staying


def end(rig: Rig, fence: int, **given: str) -> None:
    rig.run("turn_cancel")
    rig.pass_ms(2000)
    rig.run("turn_claim", fence=fence)
    assert rig.run("turn_end", fence=fence + 1, **given)[0] == "ENDED"


def notices(rig: Rig) -> int:
    return int(rig.client.llen(rig.names(TID)["notices"]))


def test_the_last_call_of_the_last_wave_rings_the_next_step(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    assert rig.run("call_settle", message='{"role":"tool","n":1}') == ["SETTLED"]
    assert rig.status() == "completed"
    assert rig.history()[-1] == {"role": "tool", "n": 1}
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_the_last_call_of_a_wave_opens_the_next(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2, **WRITE})
    rig.run("call_claim")
    assert rig.run("call_settle") == ["SETTLED"]
    assert rig.status("c1-1") == "dispatched"


def test_a_success_is_remembered_with_its_write_epoch(rig: Rig) -> None:
    rig.running(fp="f", **WRITE)
    rig.run("call_settle", found='["source"]', block="1")
    assert rig.client.hgetall(rig.names(TID)["guard"]) == {"f": "1"}
    assert rig.client.lrange(rig.names(TID)["sources"], 0, -1) == ["source"]
    assert rig.client.smembers(rig.names(TID)["blocked"]) == {"tool"}


def test_only_who_runs_it_settles_it(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_settle", owner="w2") == ["LOST", "running"]
    assert rig.run("call_settle", attempt=2) == ["LOST", "running"]
    assert rig.run("call_settle", call="c9-9") == ["LOST", "gone"]
    rig.run("call_settle")
    assert rig.run("call_settle") == ["SETTLED"], "its reply may have been lost"
    assert rig.run("call_settle", status="failed") == ["LOST", "completed"]
    assert rig.status() == "completed"


def test_the_end_after_a_timeout_is_late_and_leaves_one_notice(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("call_settle", status="timed_out", notice="cut")[0] == "SETTLED"
    assert notices(rig) == 0
    epoch = int(rig.turn()["write_epoch"])
    assert rig.run("call_settle", notice="ended")[0] == "LATE"
    assert rig.status() == "timed_out_late"
    assert notices(rig) == 1
    assert int(rig.turn()["write_epoch"]) == epoch + 1


def test_what_ended_late_is_not_to_be_asked_for_again(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_settle", status="timed_out", retryable="1")
    trace = rig.names(TID)["trace"]
    assert rig.client.hget(trace, "c1-0:retryable") == "1"
    rig.run("call_settle", notice="ended")
    assert rig.status() == "timed_out_late"
    assert rig.client.hget(trace, "c1-0:retryable") is None


def test_after_the_turn_a_cut_is_no_news_but_the_end_is(rig: Rig) -> None:
    rig.running(**WRITE)
    end(rig, 1)
    assert rig.run("call_settle", status="timed_out", notice="cut") == ["LATE", "unknown"]
    assert notices(rig) == 0
    assert rig.run("call_settle", notice="ended") == ["LATE", "unknown"]
    assert notices(rig) == 1
    assert rig.client.pttl(rig.names(TID)["notices"]) > 0
    assert rig.status() == "unknown"


def test_a_read_that_comes_late_says_nothing(rig: Rig) -> None:
    rig.running()
    end(rig, 1)
    assert rig.run("call_settle", notice="ended") == ["LATE", "cancelled"]
    assert notices(rig) == 0


def test_nothing_enters_through_a_shut_gate(rig: Rig) -> None:
    rig.running()
    rig.run("gate_shut")
    assert rig.run("call_settle") == ["LATE", "running"]
    assert rig.status() == "running"


def test_what_it_changed_is_kept_unless_it_comes_too_late(rig: Rig) -> None:
    rig.running(**WRITE)
    rig.run("call_settle", changed='["one","two"]')
    rig.run("call_settle", changed='["three"]')
    assert rig.client.lrange(rig.names(TID)["changes"], 0, -1) == ["one", "two"]


def test_a_cancelled_turn_opens_nothing_and_is_rung_when_nothing_runs(rig: Rig) -> None:
    rig.committed({}, {"index": 1}, {"index": 2, "wave": 2})
    for call in ("c1-0", "c1-1"):
        rig.run("call_claim", call=call)
    rig.bells("brainq.turns")
    rig.run("turn_cancel")
    assert rig.run("call_settle", call="c1-0") == ["SETTLED"]
    assert rig.bells("brainq.turns") == []
    assert rig.run("call_settle", call="c1-1") == ["SETTLED"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.status("c1-2") == "planned"


def test_a_late_write_of_a_review_is_noted_where_its_session_is(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    rig.run("turn_begin", items=["{}"])
    rig.commit(WRITE)
    rig.run("call_claim")
    end(rig, 1)
    assert rig.run("call_settle", notice="ended") == ["LATE", "unknown"]
    assert rig.client.pttl(rig.names(TID)["notices"]) > 0


def test_its_thread_may_continue_with_what_that_opens(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2})
    rig.run("call_claim")
    rig.bells("brainq.turns")
    rig.bells("brainq.tools.read_only")
    assert rig.run("call_settle", **staying())[0] == "CALL"
    assert rig.run("call_settle", call="c1-1", owner="v1@w1", **staying(owner="v2@w1"))[0] == "TURN"


def test_an_old_owner_continues_with_nothing(rig: Rig) -> None:
    rig.running()
    rig.bells("brainq.turns")
    assert rig.run("call_settle", owner="w2", **staying()) == ["LOST", "running"]
    assert rig.run("call_settle", attempt=2, **staying()) == ["LOST", "running"]
    assert rig.turn()["owner"] == ""
