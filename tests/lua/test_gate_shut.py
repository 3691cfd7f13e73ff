"""gate_shut.lua: the write gate before the end."""

from __future__ import annotations

from tests.lua.rig import Rig


def test_it_is_shut_once(rig: Rig) -> None:
    assert rig.run("gate_shut") == ["GONE"]
    rig.active()
    assert rig.run("gate_shut") == ["SHUT"]
    assert rig.run("gate_shut") == ["ALREADY"]
