"""finalize_send.lua: the result goes out, and the chain goes on."""

from __future__ import annotations

from typing import Any

from tests.lua.rig import LEASE_MS, TID, Rig


def at_result(rig: Rig) -> None:
    """The chain is at the step that sends the result, which `w1` holds under fence 2."""
    rig.finalizing()
    rig.run("finalize_settle", step="log")
    rig.bells("brainq.finalize")


def test_the_result_is_out_and_the_next_step_taken(rig: Rig) -> None:
    at_result(rig)
    reply = rig.run("finalize_send", step="result", next_step="decision", fence=2, body="first")
    assert reply == ["GO", 3, 1, "0", "1"]
    turn = rig.turn()
    assert (turn["state"], turn["fin_step"], turn["fin_owner"]) == ("completed", "decision", "w1")
    assert (turn["result_at"], turn["fin_lease"]) == (str(rig.now_ms), str(rig.now_ms + LEASE_MS))
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.events()[-1] == "result"


def test_twice_is_once(rig: Rig) -> None:
    at_result(rig)
    rig.run("finalize_send", step="result", next_step="decision", fence=2, body="first")
    again: dict[str, Any] = {"step": "result", "next_step": "decision", "fence": 2, "body": "second"}
    assert rig.run("finalize_send", **again) == ["GO", 3, 1, "0", "1"], "its reply may have been lost"
    assert rig.run("finalize_send", **again, owner="w2") == ["LOST"]
    assert rig.client.get(rig.names(TID)["result"]) == "first"
    assert rig.events().count("result") == 1


def test_a_result_that_went_out_before_stays(rig: Rig) -> None:
    at_result(rig)
    rig.run("result_publish", body="of the sweeper")
    assert rig.run("finalize_send", step="result", next_step="decision", fence=2)[0] == "GO"
    assert rig.client.get(rig.names(TID)["result"]) == "of the sweeper"
    assert rig.events().count("result") == 1


def test_of_a_lost_claim_nothing_goes_out(rig: Rig) -> None:
    at_result(rig)
    assert rig.run("finalize_send", step="result", next_step="decision", fence=1) == ["LOST"]
    assert rig.run("finalize_send", step="log", next_step="decision", fence=2) == ["LOST"]
    assert rig.turn()["state"] == "closing"
    assert rig.client.exists(rig.names(TID)["result"]) == 0


def test_others_who_wait_for_their_result_come_first(rig: Rig) -> None:
    at_result(rig)
    rig.put_in_line("brainq.finalize")
    assert rig.run("finalize_send", step="result", next_step="decision", fence=2) == ["NEXT"]
    turn = rig.turn()
    assert (turn["state"], turn["fin_step"], turn["fin_owner"]) == ("completed", "decision", "")
