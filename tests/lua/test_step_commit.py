"""step_commit.lua: a reply's calls."""

from __future__ import annotations

import json

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig, planned
from tests.lua.test_stay import staying


def test_the_first_wave_opens_and_the_owner_is_done(rig: Rig) -> None:
    reply = rig.committed({}, {"index": 1}, {"index": 2, "wave": 2, "effect": "network"})
    assert reply == ["COMMITTED"]
    assert [rig.status(f"c1-{n}") for n in range(3)] == ["dispatched", "dispatched", "planned"]
    assert rig.bells("brainq.tools.read_only") == [["s1", "t01", "c1-0", 1], ["s1", "t01", "c1-1", 1]]
    assert (rig.turn()["awaits"], rig.turn()["owner"]) == ("calls", "")


def test_a_write_whose_lanes_are_free_enters_its_queue(rig: Rig) -> None:
    assert rig.committed({**WRITE, "lanes": '["A"]'}) == ["COMMITTED"]
    assert rig.status() == "dispatched"
    assert rig.bells("brainq.tools.local_write") == [["s1", "t01", "c1-0", 1]]
    assert rig.client.lrange(rig.keys.lane("A"), 0, -1) == ["s1 t01 c1-0"]


def test_when_all_are_denied_the_next_step_is_rung(rig: Rig) -> None:
    rig.committed({"denied": "blocked", "message": '{"role":"tool","n":1}'})
    assert rig.status() == "denied"
    assert [message["role"] for message in rig.history()] == ["assistant", "tool"]
    assert rig.bells("brainq.turns")[-1] == ["s1", "t01", 1]


def test_what_already_succeeded_is_not_repeated(rig: Rig) -> None:
    rig.owned()
    rig.client.hset(rig.names(TID)["guard"], "f", "0")
    rig.run("step_commit", item="{}", calls=json.dumps([planned(fp="f")]))
    assert rig.status() == "denied"


def test_only_the_owner_commits_and_each_step_once(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_commit", item="{}", calls="[]", fence=0) == ["LOST"]
    assert rig.run("step_commit", item="{}", calls="[]", owner="w2") == ["LOST"]
    assert rig.run("step_commit", item="{}", calls="[]", step=2) == ["LOST"]
    assert rig.history() == []


def test_a_call_that_needs_an_approval_is_parked_and_asked_for(rig: Rig) -> None:
    rig.committed({"ask_ms": 5_000, "ask_reason": "dear"}, {"index": 1})
    assert (rig.status(), rig.status("c1-1"), rig.turn()["state"]) == ("parked", "dispatched", "active")
    trace = rig.client.hgetall(rig.names(TID)["trace"])
    assert (trace["c1-0:ask"], trace["c1-0:ask_ends"]) == ("pending", str(rig.now_ms + 5_000))
    told = [fields for _, fields in rig.client.xrange(rig.names(TID)["events"])]
    asked = next(fields for fields in told if fields["kind"] == "approval.requested")
    assert json.loads(asked["data"])["reason"] == "dear"


def test_a_cancelled_turn_opens_nothing_and_is_rung(rig: Rig) -> None:
    rig.owned()
    rig.run("turn_cancel")
    rig.bells("brainq.turns")
    rig.commit({})
    assert rig.status() == "planned"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]


def test_calls_over_the_budget_are_named_and_nothing_is_committed(rig: Rig) -> None:
    rig.owned(max_tool_calls=2)
    plan = [planned(0), planned(1, denied="blocked", message="{}"), planned(2), planned(3), planned(4)]
    asked = {"item": "{}", "calls": json.dumps(plan)}
    told = rig.events()
    for _ in range(2):
        assert rig.run("step_commit", **asked) == ["BUDGET", "c1-3 c1-4"]
    assert (rig.history(), rig.status(), rig.events()) == ([], None, told)
    assert rig.turn()["awaits"] == "coordinator"

    denied = [call | {"denied": "budget", "message": "{}"} for call in plan[3:]]
    assert rig.run("step_commit", item="{}", calls=json.dumps([*plan[:3], *denied])) == ["COMMITTED"]
    assert [rig.status(f"c1-{n}") for n in range(5)] == ["dispatched", "denied", "dispatched", "denied", "denied"]
    assert rig.client.hget(rig.names(TID)["budget"], "tool_calls_used") == "2"


def test_past_the_deadline_no_call_is_paid_for_that_was_not_before(rig: Rig) -> None:
    rig.owned()
    rig.run("budget_claim", kind="tool_calls", ids=["c1-0"])
    rig.pass_ms(TIMEOUT_MS)
    asked = {"item": "{}", "calls": json.dumps([planned(0), planned(1)])}
    assert rig.run("step_commit", **asked) == ["BUDGET", "c1-1"]
    assert rig.run("step_commit", item="{}", calls=json.dumps([planned(0)])) == ["COMMITTED"]


def test_a_reply_of_more_calls_than_lua_has_places_on_its_stack_is_committed_whole(rig: Rig) -> None:
    message = '{"role":"tool"}'
    assert rig.committed(*({"index": index, "denied": "too_many", "message": message} for index in range(3_000))) == [
        "COMMITTED"
    ]
    assert len(rig.history()) == 3_001
    assert rig.bells("brainq.turns")[-1] == ["s1", "t01", 1]


def test_the_thread_of_the_owner_may_continue_with_what_it_opens(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    stay = staying()
    assert rig.run("step_commit", item="{}", calls=json.dumps([planned()]), **stay)[0] == "CALL"
    assert rig.run("step_commit", item="{}", calls="[]", **{**stay, "stay": ""}) == ["LOST"]


def test_without_calls_it_may_continue_with_the_next_step(rig: Rig) -> None:
    rig.owned()
    rig.bells("brainq.turns")
    assert rig.run("step_commit", item="{}", calls="[]", **staying()) == ["TURN", 2, rig.now_ms, "1"]
    assert rig.turn()["owner"] == "v1@w1"
