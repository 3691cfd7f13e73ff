"""tenant_show.lua: a session that was hidden goes on."""

from __future__ import annotations

from tests.lua.rig import SID, TID, Rig
from tests.lua.test_tenant_hide import hidden, hide, parked


def test_what_is_shown_is_looked_at_soon(rig: Rig) -> None:
    parked(rig)
    hide(rig)
    rig.client.delete(rig.keys.index)
    assert rig.run("tenant_show", awaits=f"{TID} t02 gone", hidden=hidden(rig)) == ["SHOWN"]
    assert rig.look_in_ms(TID) == rig.look_in_ms("t02") == 1000
    assert rig.client.zcard(rig.keys.index) == 2


def test_what_is_not_there_any_more_is_left_out(rig: Rig) -> None:
    gone = f"{rig.keys.session(SID)}moving:session"
    assert rig.run("tenant_show", awaits="", hidden=[gone]) == ["SHOWN"]
    assert rig.client.exists(rig.names(TID)["session"]) == 0
