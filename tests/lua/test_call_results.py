"""The scripts that bring a call its progress and its result, from here or from outside."""

from __future__ import annotations

import json

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig
from tests.lua.test_stay import staying

# call_progress.lua: how far a running call is.


SAID = json.dumps({"done": 1.0, "total": 3.0, "message": "rows"})


def told(rig: Rig) -> list[dict[str, object]]:
    rows = rig.client.xrange(rig.names(TID)["events"])
    return [json.loads(fields["data"]) for _, fields in rows if fields["kind"] == "call.progress"]


def test_each_word_is_one_event(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_progress", number=1, progress=SAID) == ["OK"]
    assert rig.run("call_progress", number=2, progress=json.dumps({"done": 2})) == ["OK"]
    assert told(rig) == [{"call": "c1-0", "done": 1, "total": 3, "message": "rows"}, {"call": "c1-0", "done": 2}]


def test_nothing_is_told_of_a_call_that_is_anothers_or_over(rig: Rig) -> None:
    rig.running()
    assert rig.run("call_progress", owner="w2", number=1, progress=SAID) == ["LOST"]
    assert rig.run("call_progress", attempt=2, number=1, progress=SAID) == ["LOST"]
    rig.run("call_settle")
    assert rig.run("call_progress", number=1, progress=SAID) == ["LOST"]
    assert told(rig) == []


def test_a_call_that_waits_for_a_server_s_task_is_told_of_once_a_word(rig: Rig) -> None:
    rig.running()
    rig.run("call_park", token="t", timeout_ms=60_000, why="outside")
    assert rig.client.hget(rig.names(TID)["turn"], "state") == "parked"
    for _ in range(2):
        assert rig.run("call_progress", number=7, progress=SAID) == ["OK"]
    assert rig.run("call_progress", owner="w2", number=8, progress=SAID) == ["LOST"]
    assert len(told(rig)) == 1


def test_nothing_is_told_of_a_turn_that_ends(rig: Rig) -> None:
    rig.running()
    rig.client.hset(rig.names(TID)["turn"], "state", "closing")
    assert rig.run("call_progress", number=1, progress=SAID) == ["LOST"]
    assert told(rig) == []


# call_settle.lua: how a call ended.


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


# call_park.lua: a call waits for a result from outside.


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


# outside_complete.lua: the result of a parked call, once.


def parked(rig: Rig, **call: str) -> None:
    rig.running(**call)
    assert rig.run("call_park")[0] == "PARKED"


def test_the_turn_goes_on_and_its_deadline_has_stood_still(rig: Rig) -> None:
    parked(rig)
    rig.pass_ms(5_000)
    rig.bells("brainq.turns")
    assert rig.run("outside_complete", message='{"role":"tool","n":1}') == ["SETTLED"]
    assert (rig.status(), rig.turn()["state"], rig.turn()["parked_ms"]) == ("completed", "active", "5000")
    deadline = rig.client.hget(rig.names(TID)["budget"], "deadline")
    assert int(deadline) == rig.now_ms + TIMEOUT_MS
    assert rig.history()[-1] == {"role": "tool", "n": 1}
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_a_token_is_used_once_and_no_other_will_do(rig: Rig) -> None:
    parked(rig)
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.run("outside_complete")[0] == "SETTLED"
    assert rig.run("outside_complete", status="failed") == ["USED"]
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.status() == "completed"


def test_a_call_that_is_unknown_or_did_not_start_takes_nothing(rig: Rig) -> None:
    rig.committed({})
    assert rig.run("outside_complete", call="c9-9") == ["GONE"]
    assert rig.run("outside_complete") == ["BAD"]


def test_before_the_function_returns_it_is_kept_once(rig: Rig) -> None:
    rig.running()
    assert rig.run("outside_complete") == ["EARLY"]
    assert rig.run("outside_complete") == ["USED"]
    assert rig.run("outside_complete", token="other") == ["BAD"]
    assert rig.status() == "running"


def test_a_write_that_comes_too_late_is_told_to_the_model(rig: Rig) -> None:
    parked(rig, **WRITE)
    rig.run("turn_cancel")
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert rig.status() == "unknown"
    assert rig.run("outside_complete", notice="it was done") == ["LATE", "unknown"]
    assert rig.client.lrange(rig.names(TID)["notices"], 0, -1) == ["it was done"]
    assert rig.client.pttl(rig.names(TID)["notices"]) > 0


def test_in_a_cancelled_turn_it_settles_and_opens_nothing(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2})
    rig.run("call_claim")
    rig.run("call_park")
    rig.run("turn_cancel")
    assert rig.run("outside_complete") == ["SETTLED"]
    assert rig.status("c1-1") == "planned"


def test_what_a_child_used_is_paid_once(rig: Rig) -> None:
    parked(rig)
    used = {
        "input_tokens": 7,
        "output_tokens": 2,
        "cache_read_tokens": 0,
        "cache_creation_tokens": 0,
        "cost": "0.5",
        "spend": '{"kind":"child"}',
    }
    before = int(rig.client.hget(rig.names(TID)["budget"], "input_tokens"))
    rig.run("outside_complete", spent=json.dumps(used))
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (int(budget["input_tokens"]), budget["cost_usd"]) == (before + 7, "0.5")
    assert rig.client.lrange(rig.names(TID)["spends"], -1, -1) == ['{"kind":"child"}']


def test_p4_a_result_that_its_call_was_cut_off_before_it_could_take_is_told(rig: Rig) -> None:
    rig.running(**WRITE)
    assert rig.run("outside_complete", known="1", notice='{"it": "was done"}') == ["EARLY"]
    assert rig.run("call_settle", status="timed_out")[0] == "SETTLED"
    assert rig.status() == "timed_out"
    assert rig.client.lrange(rig.keys.of_session("s1", "notices"), 0, -1) == ['{"it": "was done"}']
