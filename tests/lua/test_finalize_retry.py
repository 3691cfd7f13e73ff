"""finalize_retry.lua: a step that failed."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_it_waits_and_remembers_since_when_it_fails(rig: Rig) -> None:
    rig.finalizing()
    since = str(rig.now_ms)
    assert rig.run("finalize_retry", failure="log: Boom") == ["WAIT"]
    assert (rig.turn()["fin_failing_since"], rig.turn()["fin_error"]) == (since, "log: Boom")
    rig.pass_ms(500)
    rig.run("finalize_claim", step="log")
    assert rig.run("finalize_retry", fence=2) == ["WAIT"]
    assert rig.turn()["fin_failing_since"] == since


def test_an_old_claim_is_lost(rig: Rig) -> None:
    rig.finalizing()
    assert rig.run("finalize_retry", fence=0) == ["LOST"]
