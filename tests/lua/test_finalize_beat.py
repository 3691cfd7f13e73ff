"""finalize_beat.lua: a finalizer step's lease."""

from __future__ import annotations

from tests.lua.rig import LEASE_MS, Rig


def test_only_the_newest_claim_beats(rig: Rig) -> None:
    rig.finalizing()
    rig.pass_ms(3000)
    assert rig.run("finalize_beat") == ["OK"]
    assert rig.turn()["fin_lease"] == str(rig.now_ms + LEASE_MS)
    assert rig.run("finalize_beat", fence=0) == ["LOST"]
    rig.run("finalize_settle", step="log")
    assert rig.run("finalize_beat") == ["LOST"]
