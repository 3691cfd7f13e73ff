"""turn_park.lua: a turn waits for a budget, in its tenant's turn, and holds nothing."""

from __future__ import annotations

from tests.lua.rig import TID, Rig
from tests.support.money import FAR_MS, LINE


def test_a_parked_turn_can_be_cancelled(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS)
    rig.run("turn_cancel")
    assert rig.turn()["state"] == "active"
    assert rig.run("turn_claim", owner="w2", fence=1)[0] == "GO"
    assert rig.client.zcard(LINE) == 0


def test_tenants_take_turns_in_the_line(rig: Rig) -> None:
    for sid in ("acme:1", "acme:2", "beta:1"):
        rig.client.hset(rig.names(TID, sid)["turn"], mapping={"state": "active", "owner": "w1", "fence": 1})
        rig.run("turn_park", sid=sid, parked_line=LINE, after_ms=FAR_MS)
    assert rig.client.zrange(LINE, 0, -1) == [f"acme:1 {TID}", f"beta:1 {TID}", f"acme:2 {TID}"]


def test_only_the_owner_parks_it_and_it_keeps_its_place(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", owner="w2", parked_line=LINE, after_ms=FAR_MS) == ["LOST"]
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    assert rig.events()[-2:] == ["notice", "turn.parked"]
    assert rig.client.zcard(rig.keys.room_live) == 0, "its capacity is another's"
    place = rig.client.zscore(LINE, f"s1 {TID}")
    rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix)
    rig.run("turn_sweep")
    rig.run("turn_claim", fence=1)
    rig.run("turn_park", fence=2, parked_line=LINE, after_ms=FAR_MS)
    assert rig.client.zscore(LINE, f"s1 {TID}") == place
