"""turn_sweep.lua: what one look heals."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import LEASE_MS, SID, TID, TIMEOUT_MS, WRITE, Rig, planned


def actions(rig: Rig) -> str:
    reply = rig.run("turn_sweep")
    assert reply[0] == "LOOK"
    return str(reply[2])


def test_an_unknown_turn_is_gone_and_keeps_its_place_until_somebody_has_asked_sql(rig: Rig) -> None:
    rig.run("index_hasten", members=[f"{SID} {TID}"], after_ms=700)
    assert rig.run("turn_sweep") == ["GONE"]
    assert rig.look_in_ms() == 700


def test_a_look_that_is_asked_for_after_another_is_not_put_off(rig: Rig) -> None:
    """However long the sweeper keeps others from what it has taken."""
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("index_hasten", members=[f"{SID} t02"], after_ms=0)
    assert f"{SID} t02" in rig.once("index_take", hold_ms=2_000)
    rig.run("turn_sweep", tid="t02")
    rig.run("hold_place", tid="t02", timeout_ms=4_999)
    assert rig.look_in_ms("t02") == 5_000


def test_what_is_rung_again_is_not_rung_again_by_a_look_right_after(rig: Rig) -> None:
    rig.active()
    rig.bells("brainq.turns")
    rig.pass_ms(5000)
    actions(rig)
    rig.pass_ms(40)
    actions(rig)
    assert len(rig.bells("brainq.turns")) == 1


def test_a_lost_bell_is_rung_again_after_its_time(rig: Rig) -> None:
    rig.active()
    rig.bells("brainq.turns")
    actions(rig)
    assert rig.bells("brainq.turns") == []
    rig.pass_ms(5000)
    actions(rig)
    assert rig.bells("brainq.turns") == [["s1", "t01", 0]]


def test_what_is_rung_again_is_a_task_of_its_own(rig: Rig) -> None:
    """Else the success of a bell that came too late would stand where the first one's failure was shown."""
    rig.committed({})
    first = rig.task_ids("brainq.tools.read_only")
    rig.bells("brainq.tools.read_only")
    rig.pass_ms(5000)
    actions(rig)
    (again,) = rig.task_ids("brainq.tools.read_only")
    assert first == ["t01.c1-0.1"]
    assert again == f"t01.c1-0.1.again-{rig.now_ms}"


def test_a_long_queue_is_not_flooded(rig: Rig) -> None:
    rig.active()
    rig.pass_ms(60_000 - 1)
    actions(rig)
    assert len(rig.bells("brainq.turns")) == 1


def test_a_lapsed_owner_is_put_out_and_another_rung(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    rig.pass_ms(LEASE_MS)
    actions(rig)
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.run("turn_beat") == ["LOST"]


def test_a_passed_deadline_and_a_cancel_end_the_turn(rig: Rig) -> None:
    rig.active()
    rig.pass_ms(TIMEOUT_MS)
    assert actions(rig) == "end"
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.owned()
    rig.run("turn_cancel")
    rig.pass_ms(5000)
    assert actions(rig) == "end"


def test_an_owner_may_see_its_own_deadline_first(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["turn"], "lease_until", rig.now_ms + 2 * TIMEOUT_MS)
    rig.pass_ms(TIMEOUT_MS + 2000)
    assert actions(rig) == ""
    rig.pass_ms(1)
    assert actions(rig) == "end"


def test_calls_are_rescued_rung_and_put_in_line(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    rig.run("call_claim")
    rig.bells("brainq.tools.read_only")
    rig.pass_ms(LEASE_MS)
    assert actions(rig) == "rescue c1-0 1"
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c1-1", 1]]


def test_a_finalizer_that_fails_or_nobody_serves_delivers_without_it(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_retry")
    rig.pass_ms(5000)
    assert actions(rig) == "deliver"
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.closing()
    rig.pass_ms(15_000)
    assert actions(rig) == "deliver"


def test_a_finalizer_step_is_rung_when_its_owner_is_gone_or_its_wait_is_over(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    rig.pass_ms(LEASE_MS)
    actions(rig)
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]
    assert rig.run("finalize_claim", step="log")[0] == "GO"
    rig.run("finalize_retry", fence=2, retry_ms=60_000)
    actions(rig)
    assert rig.bells("brainq.finalize") == []
    rig.pass_ms(60_000)
    actions(rig)
    assert rig.bells("brainq.finalize") == [["s1", "t01", "log"]]


def test_a_bell_that_waits_is_not_lost_because_the_result_went_out(rig: Rig) -> None:
    """Its list is the one that it was put into, which is long, and not the one that the next step would be put into."""
    rig.closing()
    rig.put_in_line("brainq.finalize")
    rig.run("result_publish")
    for _ in range(3):
        rig.pass_ms(20_000)
        actions(rig)
    assert rig.client.llen(rig.keys.prefix + "brainq.finalize") == 2
    assert rig.bells("later") == []


def test_a_turn_that_waits_is_looked_at_seldom(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    looks_ms: set[Any] = set()
    for _ in range(10):
        rig.pass_ms(123)
        assert rig.run("turn_sweep", tid="t02") == ["LOOK", 0, "", "0"]
        looks_ms.add(rig.look_in_ms("t02"))
    assert 900_000 <= min(looks_ms) <= max(looks_ms) <= 1_800_000
    assert len(looks_ms) > 5, "all that wait would be looked at at one time"


def test_a_finished_chain_needs_no_more_looks(rig: Rig) -> None:
    rig.finalizing()
    rig.run("result_publish")
    rig.run("finalize_finish", step="log")
    rig.run("index_hasten", members=[f"{SID} {TID}"], after_ms=0)
    assert rig.run("turn_sweep") == ["ENDED"]
    assert rig.look_in_ms() is None


def test_a_parked_turn_has_no_deadline_but_its_waits_end(rig: Rig) -> None:
    rig.running()
    rig.run("call_park", timeout_ms=2 * TIMEOUT_MS)
    assert (actions(rig), rig.look_in_ms()) == ("", 2 * TIMEOUT_MS + 1)
    rig.pass_ms(2 * TIMEOUT_MS - 400)
    assert (actions(rig), rig.look_in_ms()) == ("", 401)
    rig.pass_ms(400)
    assert (actions(rig), rig.look_in_ms()) == ("expire", 5_000), "looked at again, should that fail"


def test_what_is_parked_beside_calls_that_run_ends_too(rig: Rig) -> None:
    rig.committed({}, {"index": 1})
    for call in ("c1-0", "c1-1"):
        rig.run("call_claim", call=call)
    rig.run("call_park", timeout_ms=1_000)
    rig.pass_ms(1_000)
    assert actions(rig) == "expire"


def test_a_hold_that_is_to_cancel_is_looked_at_when_its_time_is_up(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place", policy="cancel", timeout_ms=1_000)
    rig.commit(WRITE)
    assert actions(rig) == ""
    rig.pass_ms(1_000)
    assert actions(rig) == "expire"


def test_a_cancelled_turn_is_ended_after_the_grace(rig: Rig) -> None:
    rig.running()
    rig.run("turn_cancel")
    assert (actions(rig), rig.look_in_ms()) == ("", 2_001)
    rig.pass_ms(2_000)
    assert actions(rig) == "end"


def test_a_child_is_compared_with_its_parent(rig: Rig) -> None:
    rig.active(parent="s0 t00 c1-0")
    assert actions(rig) == "parent s0 t00 c1-0"
    rig.run("turn_claim", fence=0)
    rig.run("turn_end", fence=1)
    assert actions(rig) == ""


def test_an_opening_wave_whose_results_come_from_outside_is_not_waited_for(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_open", calls=json.dumps([planned(id="c0-0")]))
    rig.run("call_claim", call="c0-0")
    rig.run("call_park", call="c0-0", timeout_ms=2 * TIMEOUT_MS)
    rig.pass_ms(10_000)
    assert actions(rig) == "skip"
    assert rig.run("opening_skip") == ["SKIPPED"]
    assert (rig.status("c0-0"), rig.turn()["state"]) == ("timed_out", "active")


def test_a_hold_cancels_a_turn_that_thinks_too(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place", policy="cancel", timeout_ms=400)
    assert actions(rig) == ""
    assert rig.look_in_ms() == 401
    rig.pass_ms(400)
    assert actions(rig) == "expire"
    assert rig.run("waits_expire")[0] == "CANCEL"


HOUR_MS = 3_600_000


def test_a_lease_a_bell_and_a_deadline_do_not_outlast_a_clock_that_stepped_back(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_sweep")
    rig.pass_ms(-HOUR_MS)
    rig.bells("brainq.turns")
    rig.run("turn_sweep")
    assert int(rig.turn()["lease_until"]) == rig.now_ms + LEASE_MS
    assert int(rig.client.hget(rig.names(TID)["budget"], "deadline")) <= rig.now_ms + TIMEOUT_MS
    rig.pass_ms(LEASE_MS)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [[SID, TID, 1]]


def test_so_are_calls_healed(rig: Rig) -> None:
    rig.running()
    rig.run("turn_sweep")
    rig.pass_ms(-HOUR_MS)
    assert "rescue" not in actions(rig)
    rig.pass_ms(LEASE_MS)
    assert "rescue c1-0 1" in actions(rig)


def test_and_a_lost_bell_of_a_turn_that_was_never_looked_at_before(rig: Rig) -> None:
    rig.active()
    rig.bells("brainq.turns")
    rig.pass_ms(-HOUR_MS)
    rig.run("turn_sweep")
    rig.pass_ms(5_000)
    rig.run("turn_sweep")
    assert rig.bells("brainq.turns") == [[SID, TID, 0]]


def test_what_is_awaited_for_long_is_not_cut_short_by_a_look(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_open", calls=json.dumps([planned(id="c0-0")]), opening_ms=30_000)
    rig.run("turn_sweep", rering_ms=1_000)
    assert int(rig.turn()["opening_until"]) == rig.now_ms + 30_000


def test_nor_is_a_finalizer_steps_wait(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_retry", retry_ms=60_000)
    rig.run("turn_sweep", rering_ms=1_000)
    assert int(rig.turn()["fin_retry_at"]) == rig.now_ms + 60_000


def test_neither_outlasts_a_clock_that_stepped_back(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_open", calls=json.dumps([planned(id="c0-0")]), opening_ms=30_000)
    rig.pass_ms(-HOUR_MS)
    rig.run("turn_sweep")
    assert int(rig.turn()["opening_until"]) == rig.now_ms + 30_000
    rig.client.flushdb()
    rig.pass_ms(0)
    rig.finalizing()
    rig.run("finalize_retry", retry_ms=60_000)
    rig.pass_ms(-HOUR_MS)
    rig.run("turn_sweep")
    assert int(rig.turn()["fin_retry_at"]) == rig.now_ms + 60_000
