"""result_publish.lua: the result goes out."""

from __future__ import annotations

from tests.lua.rig import TID, Rig


def test_it_goes_out_once(rig: Rig) -> None:
    rig.closing()
    assert rig.run("result_publish", body="first") == ["PUBLISHED"]
    assert rig.run("result_publish", body="second") == ["ALREADY"]
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.turn()["state"] == "completed"
    assert rig.events()[-1] == "result"
    assert rig.events().count("result") == 1


def test_an_open_or_unknown_turn_has_no_result(rig: Rig) -> None:
    assert rig.run("result_publish") == ["OPEN"]
    rig.active()
    assert rig.run("result_publish") == ["OPEN"]
