"""job_ring.lua: the doorbell of a job in SQL."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_a_job_is_rung_for_once_in_a_while(rig: Rig) -> None:
    assert rig.run("job_ring") == ["RUNG"]
    assert rig.run("job_ring") == ["ALREADY"]
    assert rig.bells("brainq.judges") == [["s1", "t01", "relevance"]]
    assert 0 < rig.client.pttl(rig.names(TID)["rung"]) <= 600_000


def test_a_queue_that_nobody_empties_is_not_filled(rig: Rig) -> None:
    for number in range(100):
        rig.once("job_ring", rung=f"r{number}", job="j")
    assert rig.run("job_ring") == ["FULL"]
    assert len(rig.bells("brainq.judges")) == 100
    assert rig.run("job_ring") == ["RUNG"]
