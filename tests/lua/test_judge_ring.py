"""judge_ring.lua: a judge's doorbell."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_a_judge_is_rung_once_in_a_while(rig: Rig) -> None:
    assert rig.run("judge_ring") == ["RUNG"]
    assert rig.run("judge_ring") == ["ALREADY"]
    assert rig.bells("brainq.judges") == [["s1", "t01", "relevance"]]
    assert 0 < rig.client.pttl(rig.names(TID)["rung"]) <= 1000
