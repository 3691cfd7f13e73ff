"""stop_drop.lua: what operators had stopped goes on, and no claim looks where nothing is stopped any more."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_stop_put import flags, stop


def test_the_last_one_to_be_lifted_ends_the_looking(rig: Rig) -> None:
    one, other = stop(rig, "tool send_email"), stop(rig, "brain shop")
    assert rig.run("stop_drop", field=one) == ["LIFTED"]
    assert flags(rig) == ["1", "1"]
    assert rig.run("stop_drop", field=other) == ["LIFTED"]
    assert flags(rig) == [None, None]


def test_what_is_not_stopped_is_not_lifted(rig: Rig) -> None:
    assert rig.run("stop_drop", field="tool send_email ") == ["ABSENT"]
