"""share_put.lua: a cell's share of a limit is put by whoever looked last."""

from __future__ import annotations

from tests.lua.rig import Rig
from tests.lua.test_share_look import ask, look, put


def test_what_was_decided_for_an_earlier_look_is_not_put(rig: Rig) -> None:
    first = look(rig, 1)[1]
    second = look(rig, 2)[1]
    assert put(rig, first, 1_000_000) == ["OLD"]
    assert ask(rig, "p0")[0] == "WAIT"
    assert put(rig, second, 1_000_000) == ["PUT"]
    assert ask(rig, "p0") == ["GO"]


def test_a_share_counts_from_the_look_not_from_when_it_is_put(rig: Rig) -> None:
    mark = look(rig, 1)[1]
    rig.pass_ms(10_000)  # home took long to answer
    put(rig, mark, 1_000_000, for_ms=15_000)
    rig.pass_ms(5_000)
    assert ask(rig, "p0")[0] == "WAIT"


def test_nothing_is_put_where_redis_was_emptied_since(rig: Rig) -> None:
    mark = look(rig, 1)[1]
    rig.client.delete(rig.keys.rate("openai:gpt", "rule"))
    assert put(rig, mark, 1_000_000) == ["OLD"]
