"""turn_submit.lua: a turn becomes live, or waits."""

from __future__ import annotations

import json

from tests.lua.rig import TID, TIMEOUT_MS, Rig
from tests.lua.test_stops import stop


def test_the_first_turn_of_a_session_is_live_and_rung(rig: Rig) -> None:
    assert rig.run("turn_submit") == ["ACTIVE"]
    assert rig.turn()["state"] == "active"
    assert rig.bells("brainq.turns") == [["s1", "t01", 0]]
    assert rig.events() == ["turn.active"]
    assert rig.client.hget(rig.names(TID)["budget"], "deadline") == str(rig.now_ms + TIMEOUT_MS)


def test_the_next_ones_wait_in_order(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", tid="t02") == ["QUEUED", 1, ""]
    assert rig.run("turn_submit", tid="t03") == ["QUEUED", 2, ""]
    assert rig.turn("t02")["state"] == "queued"
    assert rig.client.hget(rig.names("t02")["budget"], "deadline") is None
    assert [bell[1] for bell in rig.bells("brainq.turns")] == ["t01"]


def test_a_turn_that_is_known_stays_as_it_is(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", spec_json="other") == ["EXISTS", "active"]
    assert rig.client.get(rig.names(TID)["spec"]) == "{}"


def test_keys_of_a_live_turn_have_no_lifetime(rig: Rig) -> None:
    rig.client.hset(rig.names(TID)["session"], "turns", 1)
    rig.client.pexpire(rig.names(TID)["session"], 1000)
    rig.active()
    assert {rig.client.pttl(rig.names(TID)[part]) for part in ("session", "turn", "spec", "budget")} == {-1}


def test_interrupt_stops_the_live_turn_and_waits_before_the_others(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02")
    rig.bells("brainq.turns")
    assert rig.run("turn_submit", tid="t03", mode="interrupt") == ["QUEUED", 1, "t01"]
    assert (rig.turn()["cancel"], rig.turn()["cancel_reason"]) == ("1", "interrupted by turn t03")
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.client.lrange(rig.names(TID)["waiting"], 0, -1) == ["t03", "t02"]


def test_replace_drops_those_that_wait_as_well(rig: Rig) -> None:
    rig.active()
    rig.run("turn_submit", tid="t02")
    rig.run("mailbox_put", tid="t02", item='{"client_message_id":"m1"}')
    assert rig.run("turn_submit", tid="t03", mode="replace") == ["QUEUED", 1, "t02 t01"]
    assert (rig.turn("t02")["state"], rig.turn("t02")["ending"]) == ("closing", "cancelled")
    assert rig.client.hgetall(rig.names("t02")["receipts"]) == {"m1": "bounced"}
    assert rig.turn()["cancel"] == "1"
    assert rig.client.lrange(rig.names(TID)["waiting"], 0, -1) == ["t03"]


def test_reject_leaves_nothing_behind(rig: Rig) -> None:
    rig.active()
    assert rig.run("turn_submit", tid="t02", mode="reject") == ["BUSY", "t01"]
    assert rig.turn("t02") == {}
    rig.client.flushdb()
    rig.pass_ms(0)
    assert rig.run("turn_submit", mode="reject") == ["ACTIVE"]


def test_in_a_paused_session_it_waits(rig: Rig) -> None:
    rig.run("session_pause")
    assert rig.run("turn_submit", mode="interrupt") == ["QUEUED", 1, ""]
    assert rig.turn()["state"] == "queued"
    assert rig.bells("brainq.turns") == []


def test_what_kind_it_is_and_whose_child_stays_with_it(rig: Rig) -> None:
    rig.active(turn_kind="review", isolated="1", parent="s0 t00 c1-0", max_children=3)
    assert [rig.turn()[name] for name in ("kind", "isolated", "parent")] == ["review", "1", "s0 t00 c1-0"]
    assert rig.client.hget(rig.names(TID)["budget"], "children_max") == "3"


UNREADY = '{"id":"ready:k1","timeout_ms":1000,"policy":"deny","reason":"not yet"}'


def test_a_turn_that_was_submitted_as_not_ready_is_held_from_its_beginning(rig: Rig) -> None:
    rig.run("flag_add")
    rig.active(readiness_word=UNREADY)
    held = json.loads(rig.turn()["holds"])
    assert held == {"ready:k1": {"ends": rig.now_ms + 1000, "policy": "deny", "reason": "not yet", "kind": "readiness"}}
    assert rig.turn()["readiness"] == "ready:k1"
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f1"], "the flag is for another turn"


def test_its_time_runs_from_when_it_becomes_live(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_submit", tid="t02", readiness_word=UNREADY)
    assert "holds" not in rig.turn("t02")
    rig.pass_ms(5_000)
    assert rig.run("turn_end")[0] == "ENDED"
    assert json.loads(rig.turn("t02")["holds"])["ready:k1"]["ends"] == rig.now_ms + 1000


def test_a_turn_that_was_submitted_as_ready_takes_no_flag(rig: Rig) -> None:
    rig.run("flag_add")
    rig.active(readiness_word="ready")
    assert "holds" not in rig.turn()
    assert rig.client.lrange(rig.names(TID)["readiness"], 0, -1) == ["f1"]


def test_no_turn_begins_of_a_tenant_that_is_in_another_cell_or_about_to_be(rig: Rig) -> None:
    rig.client.hset(rig.keys.moved, mapping={"acme:": "b 3", "globex:": " 2"})
    assert rig.run("turn_submit", cell_tenant="acme:") == ["MOVED", "b", "3"]
    assert rig.run("turn_submit", cell_tenant="globex:") == ["MOVING"]
    assert rig.client.exists(rig.names(TID)["turn"]) == 0
    assert rig.run("turn_submit", cell_tenant="umbrella:") == ["ACTIVE"]


def test_a_turn_that_moved_is_not_taken_for_known(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.keys.moved, "acme:", "b 3")
    assert rig.run("turn_submit", cell_tenant="acme:") == ["MOVED", "b", "3"]


def test_where_there_is_one_cell_nobody_is_asked(rig: Rig) -> None:
    rig.client.hset(rig.keys.moved, "", "b 3")
    assert rig.run("turn_submit") == ["ACTIVE"]


def test_a_forbidden_submit_is_refused_before_anything_is_stored(rig: Rig) -> None:
    stop(rig, "tenant acme:", mode="forbid")
    fields = ("brain shop ", "tenant acme: ")
    word, text = rig.run("turn_submit", stop_fields=fields)
    assert (word, json.loads(text)["name"]) == ("FORBIDDEN", "acme:")
    assert rig.turn() == {}
    assert rig.run("turn_submit", stop_fields=("tenant bolt: ",)) == ["ACTIVE"]


def test_a_paused_submit_is_accepted_and_one_accepted_before_is_not_refused(rig: Rig) -> None:
    stop(rig, "brain shop")
    assert rig.run("turn_submit", stop_fields=("brain shop ",)) == ["ACTIVE"]
    stop(rig, "brain shop", mode="forbid")
    assert rig.run("turn_submit", tid="t02", sid="s2", stop_fields=()) == ["ACTIVE"]


def test_a_session_whose_brain_nobody_has_for_a_minute_takes_no_turns(rig: Rig) -> None:
    rig.active()
    rig.client.hset(rig.names(TID)["session"], "pins", json.dumps({"": ["d01d", "old"]}))
    _serve(rig, "d01d", 55_000)
    assert rig.run("turn_submit", tid="t02")[0] == "QUEUED"
    _serve(rig, "d01d", 60_000)
    assert rig.run("turn_submit", tid="t03") == ["UNSERVED", "old"]
    assert rig.turn("t03") == {}
    rig.client.hset(f"{rig.keys.prefix}released", "d01d", "0e00")
    _serve(rig, "0e00", 0)
    assert rig.run("turn_submit", tid="t03")[0] == "QUEUED"


def _serve(rig: Rig, digest: str, ago_ms: int) -> None:
    """So long ago a coordinator said that it has the brain of this digest."""
    rig.client.set(f"{rig.keys.prefix}serves:turns:{digest}", "a-build", px=86_400_000 - ago_ms)
