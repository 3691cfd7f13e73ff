"""finalize_settle.lua: the chain goes on."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_the_next_step_is_rung(rig: Rig) -> None:
    rig.finalizing()
    rig.bells("brainq.finalize")
    assert rig.run("finalize_settle", step="log") == ["NEXT"]
    assert rig.bells("brainq.finalize") == [["s1", "t01", "result"]]


def test_the_end_of_the_chain_gives_every_key_its_lifetime(rig: Rig) -> None:
    rig.finalizing()
    rig.run("result_publish")
    assert rig.run("finalize_settle", step="log", next_step="") == ["FINISHED"]
    names = rig.names(TID)
    kept = [names[part] for part in ("turn", "spec", "budget", "events", "result")]
    assert all(0 < rig.client.pttl(key) <= 50_000 for key in kept)


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_settle", step="log", fence=0) == ["LOST"]
    assert rig.run("finalize_settle", step="result") == ["LOST"]
