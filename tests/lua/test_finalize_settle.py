"""finalize_settle.lua: the chain goes on."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_the_next_step_is_rung_for_where_nobody_asks_for_it(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    assert rig.run("finalize_settle", step="log", owner="") == ["NEXT"]
    assert rig.bells("brainq.finalize") == [["s1", "t01", "result"]]
    assert rig.run("finalize_claim", step="result", owner="w2")[:3] == ["GO", 2, 1]


def test_who_settled_takes_the_next_step_under_a_fence_of_its_own(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    rig.run("finalize_retry")
    rig.pass_ms(500)
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 2, 2]
    assert rig.run("finalize_settle", step="log", fence=2) == ["GO", 3, 1, "0", "0"]
    assert rig.bells("brainq.finalize") == []
    turn = rig.turn()
    assert (turn["fin_step"], turn["fin_owner"], turn["fin_tries"]) == ("result", "w1", "1")
    assert turn["fin_lease"] == str(rig.now_ms + LEASE_MS)
    assert turn["fin_failing_since"] == "0"
    assert rig.run("finalize_beat", fence=2) == ["LOST"]
    assert rig.run("finalize_beat", fence=3) == ["OK"]
    assert rig.run("finalize_claim", step="result", owner="w2") == ["DROP", "held"]


def test_before_the_result_a_turn_is_gone_on_with_though_others_wait(rig: Rig) -> None:
    rig.finalizing()
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_settle", step="log")[0] == "GO"


def test_after_the_result_others_come_first(rig: Rig) -> None:
    rig.finalizing()
    rig.run("finalize_settle", step="log")
    rig.run("result_publish")
    rig.bells("brainq.finalize")
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_settle", step="result", next_step="decision", fence=2) == ["NEXT"]
    rig.client.delete(rig.keys.prefix + "brainq.finalize")
    assert rig.run("finalize_claim", step="decision")[:3] == ["GO", 3, 1]
    assert rig.run("finalize_settle", step="decision", next_step="end", fence=3) == ["GO", 4, 1, "0", "1"]


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_settle", step="log", fence=0) == ["LOST"]
    assert rig.run("finalize_settle", step="result") == ["LOST"]
    assert rig.run("finalize_settle", step="log")[0] == "GO"
    assert rig.run("finalize_settle", step="log")[:2] == ["GO", 2], "its reply may have been lost"
    assert rig.run("finalize_settle", step="log", owner="w2") == ["LOST"]
    assert rig.run("finalize_settle", step="log", next_step="decision") == ["LOST"]
