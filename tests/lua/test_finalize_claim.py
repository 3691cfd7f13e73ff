"""finalize_claim.lua: a finalizer step is taken."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_the_next_step_is_taken_by_one(rig: Rig) -> None:
    rig.closing()
    assert rig.run("finalize_claim", step="log")[:3] == ["GO", 1, 1]
    assert rig.run("finalize_claim", step="log", owner="w2") == ["DROP", "held"]
    rig.pass_ms(LEASE_MS)
    assert rig.run("finalize_claim", step="log", owner="w2")[:3] == ["GO", 2, 2]


def test_wrong_doorbells_are_dropped(rig: Rig) -> None:
    assert rig.run("finalize_claim", step="log") == ["DROP", "gone"]
    rig.finalizing()
    assert rig.run("finalize_claim", step="result") == ["DROP", "stale"]
    rig.run("finalize_retry")
    assert rig.run("finalize_claim", step="log") == ["DROP", "later"]
