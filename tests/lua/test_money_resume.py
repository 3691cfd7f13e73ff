"""money_resume.lua: turns that are parked for a budget go on when it is raised, or its window turns."""

from __future__ import annotations

from tests.lua.rig import SID, TID, Rig
from tests.support.money import FAR_MS, LINE


def test_a_parked_turn_goes_on_when_its_window_turns_or_it_is_raised(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "people")
    assert rig.client.zcard(LINE) == 1
    rig.run("turn_sweep")
    assert rig.turn()["state"] == "parked"
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    rig.run("turn_sweep")
    assert (rig.look_in_ms() or FAR_MS) <= 5_000, "should that message be lost, it is looked at again"
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("active", "coordinator")
    assert rig.client.zcard(LINE) == 0
    assert rig.bells("brainq.turns")[-1][1] == TID
    assert rig.run("turn_claim", fence=1)[0] == "GO"


def test_who_has_gone_on_leaves_the_line(rig: Rig) -> None:
    rig.client.zadd(LINE, {f"s1 {TID}": 1})
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    assert not rig.client.exists(LINE)


def test_who_is_hidden_while_its_tenant_moves_keeps_its_place(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_park", parked_line=LINE, after_ms=FAR_MS) == ["PARKED"]
    turn = rig.keys.turn(SID, TID)
    hidden = turn.replace("}:t:", "}:moving:t:")
    rig.client.rename(turn, hidden)
    for _ in range(2):
        assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
        assert rig.client.zcard(LINE) == 1
    rig.client.rename(hidden, turn)
    assert rig.run("money_resume", parked_line=LINE, prefix=rig.keys.prefix) == ["OK", 1]
    rig.run("turn_sweep")
    assert rig.turn()["state"] == "active"
