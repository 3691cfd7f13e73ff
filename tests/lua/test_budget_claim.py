"""budget_claim.lua: never more than there is."""

from __future__ import annotations

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig


def test_each_id_pays_once_and_the_last_unit_goes_to_one(rig: Rig) -> None:
    rig.active(max_tool_calls=2)
    assert rig.run("budget_claim", kind="tool_calls", ids=["a", "b", "a", "c"]) == [
        "DONE",
        "CLAIMED",
        "CLAIMED",
        "ALREADY",
        "SPENT",
    ]
    assert rig.run("budget_claim", kind="tool_calls", ids=["a", "d"]) == ["DONE", "ALREADY", "SPENT"]
    assert rig.client.hget(rig.names(TID)["budget"], "tool_calls_used") == "2"


def test_nothing_is_claimed_past_the_deadline(rig: Rig) -> None:
    rig.active()
    rig.pass_ms(TIMEOUT_MS)
    assert rig.run("budget_claim", ids=["a"]) == ["EXPIRED"]


def test_a_parked_turns_deadline_stands_still(rig: Rig) -> None:
    rig.committed(WRITE)
    rig.run("hold_place")
    rig.run("call_claim")
    assert rig.turn()["state"] == "parked"
    rig.pass_ms(TIMEOUT_MS + 1)
    assert rig.run("budget_claim", kind="steps", ids=["a"]) == ["DONE", "CLAIMED"]
