"""approval_decide.lua: one decision, for the arguments it was made about."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import TID, WRITE, Rig

ASK: dict[str, Any] = {"ask_ms": 60_000, "ask_reason": "dear", **WRITE}


def test_an_approved_call_goes_on(rig: Rig) -> None:
    rig.committed(ASK)
    assert (rig.turn()["state"], rig.turn()["awaits"]) == ("parked", "people")
    assert "approval.requested" in rig.events()
    assert rig.run("approval_decide") == ["APPROVED"]
    assert (rig.status(), rig.turn()["state"]) == ("dispatched", "active")
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:ask_by") == "ann"


def test_a_denied_call_says_why_and_the_model_goes_on(rig: Rig) -> None:
    rig.committed(ASK)
    rig.bells("brainq.turns")
    assert rig.run("approval_decide", decision="denied", comment="not today") == ["DENIED"]
    assert rig.status() == "denied"
    assert "a person refused it: not today" in rig.history()[-1]["content"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


@pytest.mark.parametrize("first", ["approved", "denied"])
def test_the_first_decision_stands(rig: Rig, first: str) -> None:
    rig.committed(ASK)
    rig.run("approval_decide", decision=first)
    for second in ("approved", "denied"):
        assert rig.run("approval_decide", decision=second) == ["DECIDED", first]


def test_it_is_bound_to_the_arguments(rig: Rig) -> None:
    rig.committed(ASK)
    assert rig.run("approval_decide", expect="of others") == ["STALE"]
    assert rig.status() == "parked"


def test_an_edit_is_what_runs(rig: Rig) -> None:
    rig.committed(ASK)
    edit = {"spec": '{"n":2}', "hash": "h2", "fp": "f2", "lanes": '["A"]'}
    assert rig.run("approval_decide", edit=json.dumps(edit)) == ["APPROVED"]
    reply = rig.run("call_claim")
    assert (reply[1], reply[7]) == ('{"n":2}', "1")


def test_one_decided_too_late_is_refused(rig: Rig) -> None:
    rig.committed(ASK)
    rig.pass_ms(60_000)
    assert rig.run("approval_decide") == ["EXPIRED"]
    assert rig.status() == "denied"
    assert rig.run("approval_decide") == ["DECIDED", "expired"]


def test_a_call_of_a_later_wave_meets_the_decision_when_its_turn_comes(rig: Rig) -> None:
    rig.committed({}, {"index": 1, "wave": 2, **ASK})
    assert rig.run("approval_decide", call="c1-1") == ["APPROVED"]
    rig.run("call_claim")
    assert rig.run("call_settle") == ["SETTLED"]


def test_several_calls_of_one_reply_are_decided_each_for_itself(rig: Rig) -> None:
    read = {"ask_ms": 60_000, "ask_reason": ""}
    rig.committed(read, {"index": 1, **read})
    rig.run("approval_decide", call="c1-1", decision="denied")
    assert (rig.status("c1-0"), rig.status("c1-1"), rig.turn()["state"]) == ("parked", "denied", "parked")
    rig.run("approval_decide")
    assert (rig.status(), rig.turn()["state"]) == ("dispatched", "active")


def test_nothing_is_decided_for_a_turn_that_is_cancelled_or_over(rig: Rig) -> None:
    rig.committed(ASK)
    assert rig.run("approval_decide", call="c9-9") == ["GONE"]
    rig.run("turn_cancel")
    assert rig.run("approval_decide") == ["ENDED", "cancelled"]
    rig.run("turn_claim", fence=1)
    rig.run("turn_end", fence=2, ending="cancelled")
    assert rig.run("approval_decide") == ["DECIDED", "void"]


def test_a_call_refused_as_a_repeat_asks_nobody_any_more(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["guard"], "f", "0")
    rig.commit({**ASK, "fp": "f"})
    assert rig.status() == "denied"
    assert rig.client.hget(rig.names(TID)["trace"], "c1-0:ask") == "void"
