"""aux_commit.lua: a reflection's note, and the step rung."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import TID, Rig


def test_the_note_enters_the_history_and_the_step_is_rung(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    said: dict[str, Any] = {
        "item": '{"note":1}',
        "input": 7,
        "output": 3,
        "spend": '{"kind":"reflection"}',
        "data": '{"step":1}',
    }
    assert rig.run("aux_commit", kind="reflection", **said) == ["COMMITTED"]
    assert rig.history() == [{"note": 1}]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.turn()["owner"] == ""
    assert rig.client.hmget(rig.names(TID)["budget"], "input_tokens", "output_tokens") == ["7", "3"]
    assert rig.client.lrange(rig.names(TID)["spends"], 0, -1) == ['{"kind":"reflection"}']
    assert rig.events()[-1] == "reflection"
    assert rig.run("turn_claim", owner="w2")[0] == "GO"


def test_a_stub_leaves_no_note_and_costs_nothing(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_commit", kind="reflection", item="", spend="") == ["COMMITTED"]
    assert rig.history() == []
    assert rig.client.exists(rig.names(TID)["spends"]) == 0


def test_only_the_owner_commits(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_commit", kind="reflection", owner="w2", item="{}") == ["LOST"]
    assert rig.run("aux_commit", kind="reflection", fence=0, item="{}") == ["LOST"]
    assert rig.history() == []
