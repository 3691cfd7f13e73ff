"""turn_open.lua: the wave before the first step."""

from __future__ import annotations

import json
from typing import Any

from tests.lua.rig import TID, Rig, planned


def opening(*calls: dict[str, Any]) -> str:
    return json.dumps([{**planned(**call), "id": f"c0-{place}"} for place, call in enumerate(calls)])


def opened(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_begin", items=['{"role":"user"}'])
    rig.bells("brainq.turns")
    assert rig.run("turn_open", calls=opening({"fp": ""}, {"fp": ""})) == ["OPENED"]


def test_its_calls_are_dispatched_and_the_owner_is_done(rig: Rig) -> None:
    opened(rig)
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c0-0", 1], ["s1", "t01", "c0-1", 1]]
    assert (rig.turn()["awaits"], rig.turn()["owner"], rig.turn()["step"]) == ("calls", "", "0")
    assert rig.client.hget(rig.names(TID)["budget"], "tool_calls_used") is None


def test_its_results_stay_in_the_trace_and_ring_the_first_step(rig: Rig) -> None:
    opened(rig)
    for call in ("c0-0", "c0-1"):
        rig.run("call_claim", call=call)
        assert rig.run("call_settle", call=call, message='{"role":"tool","content":"found"}')[0] == "SETTLED"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.history() == [{"role": "user"}]
    assert json.loads(rig.client.hget(rig.names(TID)["trace"], "c0-1:msg"))["content"] == "found"


def test_a_turn_that_ends_meanwhile_keeps_them_out_of_the_history(rig: Rig) -> None:
    opened(rig)
    rig.run("turn_cancel")
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.run("turn_end", owner="w2", fence=2, ending="cancelled")[0] == "ENDED"
    assert [rig.status(call) for call in ("c0-0", "c0-1")] == ["cancelled", "cancelled"]
    assert rig.history() == [{"role": "user"}]


def test_once_and_only_by_the_owner(rig: Rig) -> None:
    rig.owned()
    assert rig.run("turn_open", fence=0, calls="[]") == ["LOST"]
    assert rig.run("turn_open", owner="w2", calls="[]") == ["LOST"]
    assert rig.run("turn_open", calls=opening({})) == ["OPENED"]
    rig.run("call_claim", call="c0-0")
    rig.run("call_settle", call="c0-0")
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.run("turn_open", owner="w2", fence=2, calls=opening({})) == ["ALREADY"]
