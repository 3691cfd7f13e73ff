"""finalize_finish.lua: the end of the chain."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_every_key_gets_its_lifetime(rig: Rig) -> None:
    rig.finalizing()
    rig.run("result_publish")
    assert rig.run("finalize_finish", step="log") == ["FINISHED"]
    assert (rig.turn()["fin_step"], rig.turn()["awaits"]) == ("", "nobody")
    names = rig.names(TID)
    kept = [names[part] for part in ("turn", "spec", "budget", "events", "result")]
    assert all(0 < rig.client.pttl(key) <= 50_000 for key in kept)


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_finish", step="log", fence=0) == ["LOST"]
    assert rig.run("finalize_finish", step="result") == ["LOST"]
    assert rig.run("finalize_finish", step="log") == ["FINISHED"]
    assert rig.run("finalize_finish", step="log") == ["LOST"]
