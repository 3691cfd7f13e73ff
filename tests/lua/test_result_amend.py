"""result_amend.lua: what a result says of steps that were given up after it went out."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_it_changes_what_was_read_and_keeps_its_lifetime(rig: Rig) -> None:
    rig.closing()
    rig.run("result_publish", body="first")
    key = rig.names(TID)["result"]
    rig.client.pexpire(key, 60_000)
    assert rig.run("result_amend", known="first", body="second") == ["AMENDED"]
    assert rig.client.get(key) == "second"
    assert 0 < int(str(rig.client.pttl(key))) <= 60_000
    assert rig.run("result_amend", known="first", body="third") == ["OTHER"]
    assert rig.client.get(key) == "second"


def test_a_result_that_is_gone_stays_gone(rig: Rig) -> None:
    rig.closing()
    assert rig.run("result_amend", known="first", body="second") == ["OTHER"]
    assert rig.client.exists(rig.names(TID)["result"]) == 0
