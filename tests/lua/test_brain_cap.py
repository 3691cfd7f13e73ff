"""lib/deferred.lua, and the scripts that begin, park and end turns: caps on how many turns of a brain are live."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import Rig
from tests.lua.test_capacity_keep import A1, A2, A3, B1, keep, state, submit

LAB, ONE = {"brain": "lab"}, '{"lab":1}'
A4 = ("a:4", "t09")


@pytest.fixture(autouse=True)
def cap_of_one(rig: Rig) -> None:
    keep(rig, 9, caps=ONE)


def own(rig: Rig, turn: tuple[str, str]) -> None:
    assert rig.run("turn_claim", sid=turn[0], tid=turn[1], fence=0, brains="lab desk")[0] == "GO"


def end(rig: Rig, turn: tuple[str, str]) -> None:
    own(rig, turn)
    assert rig.run("turn_end", sid=turn[0], tid=turn[1])[0] == "ENDED"


def live(rig: Rig) -> list[str]:
    return rig.client.zrange(rig.keys.room_live, 0, -1)


def left(rig: Rig) -> list[str]:
    return [key for key in rig.client.keys("*{room}*") if key != rig.keys.room]


def aside(rig: Rig) -> list[str]:
    """The sessions of tenant a that stand aside for the lab."""
    return rig.client.zrange(rig.keys.capacity_deferred("lab", "a:"), 0, -1)


def queued(rig: Rig, turn: tuple[str, str]) -> dict[str, Any]:
    """What the newest `turn.queued` of the turn says."""
    told = rig.client.xrange(rig.names(turn[1], turn[0])["events"])
    return [json.loads(event["data"]) for _, event in told if event["kind"] == "turn.queued"][-1]


def test_a_turn_of_a_full_brain_waits_and_one_of_another_brain_does_not(rig: Rig) -> None:
    assert submit(rig, A1, **LAB) == ["ACTIVE"]
    assert submit(rig, A2, **LAB) == ["QUEUED", 0, ""]
    assert queued(rig, A2) == {"ahead": 0, "why": "brain"}
    assert submit(rig, A4, **LAB) == ["QUEUED", 1, ""]
    assert submit(rig, A3, brain="desk") == ["ACTIVE"]
    assert submit(rig, B1) == ["ACTIVE"], "one that names none has no cap"
    assert live(rig) == [" lab a:1 t01", "a:1 t01", "a:3 t03", "b:1 t04"]
    end(rig, A1)
    assert (state(rig, A2), state(rig, A4)) == ("active", "queued")
    for turn in (A2, A4, A3, B1):
        end(rig, turn)
    assert left(rig) == []


def test_a_name_that_another_begins_with_is_another_brains(rig: Rig) -> None:
    assert submit(rig, A1, brain="labs") == ["ACTIVE"]
    assert submit(rig, A2, brain="lab:1") == ["ACTIVE"]
    assert submit(rig, A3, **LAB) == ["ACTIVE"]


def test_tenants_take_turns_for_a_brain(rig: Rig) -> None:
    for turn in (A1, A2, A3, B1):
        submit(rig, turn, **LAB)
    began: list[tuple[str, str]] = []
    for turn in (A1, A2, B1):
        end(rig, turn)
        began += [other for other in (A2, A3, B1) if state(rig, other) == "active"]
    assert began == [A2, B1, A3]


def test_of_a_tenant_the_highest_priority_is_first_for_a_brain_too(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    for turn, priority in ((A2, "low"), (A3, "normal"), (A4, "high")):
        submit(rig, turn, priority=priority, **LAB)
    end(rig, A1)
    assert state(rig, A4) == "active"
    end(rig, A4)
    assert (state(rig, A3), state(rig, A2)) == ("active", "queued")


def test_who_comes_later_into_an_empty_line_is_behind_those_who_stand_aside(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    submit(rig, A2, **LAB)
    rig.pass_ms(5)
    assert submit(rig, A3, **LAB) == ["QUEUED", 1, ""]


def test_where_the_fleet_is_full_too_those_behind_a_full_brain_begin_before_it(rig: Rig) -> None:
    keep(rig, 2, caps=ONE)
    submit(rig, A1, **LAB)
    submit(rig, A2)
    assert submit(rig, A3, **LAB)[0] == "QUEUED"
    assert submit(rig, A4)[0] == "QUEUED"
    end(rig, A2)
    assert (state(rig, A3), state(rig, A4)) == ("queued", "active")
    end(rig, A1)
    assert state(rig, A3) == "active"


def test_one_that_stood_in_line_steps_aside_when_its_turn_comes_and_keeps_its_place(rig: Rig) -> None:
    keep(rig, 1, caps=ONE)
    submit(rig, ("b:9", "t10"))
    for turn in (A1, A2):
        submit(rig, turn, **LAB)
    submit(rig, A3)
    keep(rig, 3, caps=ONE)
    assert [state(rig, turn) for turn in (A1, A2, A3)] == ["active", "queued", "active"]
    assert aside(rig) == ["a:2"]
    rig.pass_ms(1)
    submit(rig, A4)
    end(rig, A1)
    assert [state(rig, turn) for turn in (A2, A4)] == ["active", "queued"], "it came before the other"


def test_a_tenant_without_a_share_does_not_keep_the_brain_from_another(rig: Rig) -> None:
    keep(rig, 9, 2, caps=ONE)
    submit(rig, ("b:9", "t10"), **LAB)
    submit(rig, A1, **LAB)
    submit(rig, A2)
    submit(rig, A3)
    submit(rig, ("c:1", "t11"), **LAB)
    end(rig, ("b:9", "t10"))
    assert (state(rig, A1), state(rig, ("c:1", "t11"))) == ("queued", "active")
    end(rig, ("c:1", "t11"))
    assert state(rig, A1) == "queued", "its tenant has no share left"
    end(rig, A2)
    assert state(rig, A1) == "active"


def test_the_turns_of_a_session_keep_their_order(rig: Rig) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1, **LAB)
    assert submit(rig, ("a:1", "t08"), brain="desk") == ["QUEUED", 1, ""]
    assert submit(rig, ("a:1", "t07"), mode="reject", brain="desk") == ["BUSY", "t01"]
    assert state(rig, ("a:1", "t08")) == "queued"
    end(rig, B1)
    assert (state(rig, A1), state(rig, ("a:1", "t08"))) == ("active", "queued")


def test_one_that_goes_before_its_session_begins_at_once_and_takes_no_place_from_it(rig: Rig) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1, **LAB)
    assert submit(rig, ("a:1", "t08"), mode="interrupt", brain="desk")[0] == "QUEUED"
    assert state(rig, ("a:1", "t08")) == "active"
    end(rig, ("a:1", "t08"))
    assert state(rig, A1) == "queued"
    end(rig, B1)
    assert state(rig, A1) == "active"


@pytest.mark.parametrize("how", ["turn_cancel", "turn_waited"])
def test_when_a_queued_turn_of_a_full_brain_ends_its_sessions_next_one_begins(rig: Rig, how: str) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1, max_wait_ms=5, **LAB)
    submit(rig, ("a:1", "t08"), brain="desk")
    submit(rig, A2, **LAB)
    rig.pass_ms(5)
    rig.bells("brainq.turns")
    assert rig.run(how, sid="a:1", tid="t01") == ["CANCELLED" if how == "turn_cancel" else "ENDED"]
    assert state(rig, ("a:1", "t08")) == "active"
    assert rig.bells("brainq.turns") == [["a:1", "t08", 0]]
    assert rig.run(how, sid="a:2", tid="t02", max_wait_ms=5)[0] in ("CANCELLED", "NONE")
    end(rig, ("a:1", "t08"))
    end(rig, B1)


@pytest.mark.parametrize("how", ["turn_cancel", "turn_waited"])
def test_in_outbox_mode_the_bell_of_that_next_one_lies_with_its_session(redis_url: str, how: str) -> None:
    rig = Rig(redis_url, "outbox")
    keep(rig, 9, caps=ONE)
    submit(rig, B1, **LAB)
    submit(rig, A1, max_wait_ms=5, **LAB)
    submit(rig, ("a:1", "t08"), brain="desk")
    rig.pass_ms(5)
    rig.run(how, sid="a:1", tid="t01")
    lain = rig.client.lrange(rig.keys.of_session("a:1", "outbox"), 0, -1)
    assert "t08.advance.0" in [json.loads(bell)["headers"]["id"] for bell in lain]
    rig.close()


def test_a_session_whose_last_turn_ends_stands_aside_no_more(rig: Rig) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1, **LAB)
    rig.run("turn_cancel", sid="a:1", tid="t01")
    end(rig, B1)
    assert left(rig) == []


def test_the_next_turn_of_a_session_waits_for_its_brain(rig: Rig) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1)
    submit(rig, ("a:1", "t08"), **LAB)
    end(rig, A1)
    assert state(rig, ("a:1", "t08")) == "queued"
    assert aside(rig) == ["a:1"]
    end(rig, B1)
    assert state(rig, ("a:1", "t08")) == "active"
    submit(rig, ("a:1", "t07"), **LAB)
    end(rig, ("a:1", "t08"))
    assert state(rig, ("a:1", "t07")) == "active", "it has the place of the one before it"


def test_who_waits_for_a_models_limit_makes_room_in_its_brain_and_goes_on_without_asking(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    submit(rig, A2, **LAB)
    own(rig, A1)
    rig.run("turn_wait", sid="a:1", tid="t01", after_ms=11_000, wait_ms=12_000, why="m:m: 60 requests a minute")
    assert state(rig, A2) == "active"
    assert " lab a:1 t01" not in live(rig)
    rig.pass_ms(11_000)
    assert rig.run("turn_claim", sid="a:1", tid="t01", fence=1, owner="w2", brains="lab")[0] == "GO"
    assert [place for place in live(rig) if place[0] == " "] == [" lab a:1 t01", " lab a:2 t02"]
    submit(rig, A3, **LAB)
    assert rig.run("turn_end", sid="a:1", tid="t01", fence=2, owner="w2")[0] == "ENDED"
    assert state(rig, A3) == "queued", "there are as many as may be"


def parked(rig: Rig, turn: tuple[str, str]) -> None:
    """The turn asks for a call that somebody has to approve."""
    own(rig, turn)
    call = {"id": "c1-0", "tool": "t", "effect": "network", "wave": 1, "spec": "{}", "hash": "h", "fp": "", "cap_ms": 9}
    asks = {"lanes": "[]", "again": "0", "repairs": 0, "denied": "", "message": "", "ask": "why", "ask_ms": 9000}
    rig.run("step_commit", sid=turn[0], tid=turn[1], item="{}", calls=json.dumps([call | asks]))
    assert state(rig, turn) == "parked"


def test_a_parked_turn_gives_its_brains_place_and_goes_on_without_any(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    submit(rig, A2, **LAB)
    parked(rig, A1)
    assert state(rig, A2) == "active"
    rig.run("approval_decide", sid="a:1", tid="t01")
    assert [place for place in live(rig) if place[0] == " "] == [" lab a:1 t01", " lab a:2 t02"]


def test_a_child_turn_asks_for_its_brains_room_which_its_parent_has_left(rig: Rig) -> None:
    keep(rig, 1, caps=ONE)
    submit(rig, A1, **LAB)
    child = ("a:1:c", "t08")
    assert submit(rig, child, parent="a:1 t01 c1-0", **LAB)[0] == "QUEUED"
    assert submit(rig, A2, parent="a:1 t01 c1-0", brain="desk") == ["ACTIVE"], "of another brain: it asks for none"
    end(rig, A2)
    parked(rig, A1)
    assert state(rig, child) == "active"


def test_a_child_turn_that_is_next_in_its_session_waits_for_its_brain(rig: Rig) -> None:
    submit(rig, B1, **LAB)
    submit(rig, A1)
    submit(rig, ("a:1", "t08"), parent="c:1 t01 c1-0", **LAB)
    end(rig, A1)
    assert state(rig, ("a:1", "t08")) == "queued"
    end(rig, B1)
    assert state(rig, ("a:1", "t08")) == "active"


def test_a_turn_that_is_to_be_ended_begins_past_the_cap(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    assert submit(rig, A2, lost_reason="Redis lost it", **LAB) == ["ACTIVE"]


def test_a_paused_session_that_stood_aside_keeps_no_place_free(rig: Rig) -> None:
    for turn in (A1, A2, A3):
        submit(rig, turn, **LAB)
    rig.run("session_pause", sid="a:2")
    end(rig, A1)
    assert (state(rig, A2), state(rig, A3)) == ("queued", "active")
    rig.run("session_resume", sid="a:2")
    assert aside(rig) == ["a:2"]
    end(rig, A3)
    assert state(rig, A2) == "active"


def test_a_lower_cap_stops_nobody_and_a_higher_one_lets_in_who_waits(rig: Rig) -> None:
    keep(rig, 9, caps='{"lab":3}')
    for turn in (A1, A2, A3, A4):
        submit(rig, turn, **LAB)
    assert keep(rig, 9, caps=ONE) == ["KEPT", 3, ""]
    end(rig, A1)
    end(rig, A2)
    assert state(rig, A4) == "queued", "one is live, and one may be"
    assert keep(rig, 9, caps='{"lab":2}') == ["KEPT", 2, "a:4"]


def test_a_brain_that_has_no_cap_any_more_keeps_nobody_waiting(rig: Rig) -> None:
    keep(rig, 3, caps='{"lab":1,"ward":4}')
    for turn in (A1, A2, A3, A4):
        submit(rig, turn, **LAB)
    assert keep(rig, 3, caps='{"ward":4}') == ["KEPT", 3, "a:2 a:3"]
    assert state(rig, A4) == "queued", "the fleet is full"
    end(rig, A1)
    for turn in (A2, A3, A4):
        end(rig, turn)
    keep(rig, 3)
    assert rig.client.hkeys(rig.keys.room) == ["all", "tenant"]
    assert left(rig) == []


def test_a_brains_place_whose_turn_is_lost_is_free_again(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    submit(rig, B1, **LAB)
    rig.client.delete(rig.names(A1[1], A1[0])["turn"])
    assert keep(rig, 9, caps=ONE) == ["KEPT", 1, "b:1"]
    assert live(rig) == [" lab b:1 t04", "b:1 t04"]


def test_sessions_without_a_colon_are_one_tenant_for_a_brain_too(rig: Rig) -> None:
    for name in ("x", "y", "z"):
        submit(rig, (name, "t01"), **LAB)
    rig.client.delete(rig.names("t01", "x")["turn"])
    assert keep(rig, 9, caps=ONE)[2] == "y"
    end(rig, ("y", "t01"))
    end(rig, ("z", "t01"))
    assert left(rig) == []


def test_a_sweeper_mends_what_was_lost_of_it(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    submit(rig, A2, **LAB)
    for key in left(rig):
        rig.client.delete(key)
    rig.run("turn_sweep", sid="a:1", tid="t01")
    assert live(rig) == [" lab a:1 t01", "a:1 t01"]
    rig.run("turn_sweep", sid="a:2", tid="t02")
    assert (state(rig, A2), aside(rig)) == ("queued", ["a:2"])
    end(rig, A1)
    assert state(rig, A2) == "active"


def test_a_cap_counts_those_that_were_live_before_it(rig: Rig) -> None:
    keep(rig, 9)
    submit(rig, A1, **LAB)
    assert live(rig) == ["a:1 t01"]
    keep(rig, 9, caps=ONE)
    assert live(rig) == [" lab a:1 t01", "a:1 t01"]
    assert submit(rig, A2, **LAB)[0] == "QUEUED"


def test_places_of_a_brain_that_has_no_cap_any_more_take_no_room(rig: Rig) -> None:
    submit(rig, A1, **LAB)
    keep(rig, 2)
    assert rig.client.zcard(rig.keys.room_live) == 2
    assert submit(rig, A2) == ["ACTIVE"]
    assert submit(rig, A3)[0] == "QUEUED"


def test_a_line_has_no_more_of_a_capped_brain_than_may_begin(rig: Rig) -> None:
    keep(rig, 1, caps='{"lab":2}')
    submit(rig, B1)
    for turn in (A1, A2, A3, A4):
        assert submit(rig, turn, **LAB)[0] == "QUEUED"
    assert rig.client.zrange(rig.keys.room_line("a:"), 0, -1) == ["a:1", "a:2"]
    assert aside(rig) == ["a:3", "a:4"]
    assert keep(rig, 9, caps='{"lab":3}') == ["KEPT", 4, "a:1 a:2 a:3"]
    assert aside(rig) == ["a:4"]
