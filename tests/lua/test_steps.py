"""The scripts of a step: begun, streamed, committed and tried again."""

from __future__ import annotations

import json

from tests.lua.rig import TID, TIMEOUT_MS, WRITE, Rig, planned
from tests.lua.test_stay import staying
from tests.support.money import held

# step_begin.lua: the next step is paid for and attempted.


def test_a_step_is_paid_once_however_often_it_is_attempted(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_begin") == ["GO", 1, 1]
    assert rig.run("step_begin", asked="1:2") == ["GO", 1, 2]
    budget = rig.client.hgetall(rig.names(TID)["budget"])
    assert (budget["steps_used"], budget["input_tokens"]) == ("1", "10")


def test_what_is_used_up_is_named(rig: Rig) -> None:
    rig.owned()
    budget = rig.names(TID)["budget"]
    rig.client.hset(budget, "steps_used", 2)
    assert rig.run("step_begin", asked="1:1") == ["SPENT", "steps"]
    rig.client.hset(budget, "cost_max_usd", "0.5")
    assert rig.run("step_begin", asked="1:2", estimate_usd="0.6") == ["SPENT", "cost"]
    rig.client.hset(budget, "tokens_max", 9)
    assert rig.run("step_begin", asked="1:3") == ["SPENT", "tokens"]
    assert rig.events()[1:] == ["budget"] * 3


def test_only_the_owner_begins_a_step(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_begin", fence=0) == ["LOST"]
    rig.run("turn_end")
    assert rig.run("step_begin") == ["LOST"]


def put(rig: Rig, *message_ids: str) -> None:
    for message_id in message_ids:
        rig.run("mailbox_put", message_id=message_id, item=f'{{"client_message_id":"{message_id}"}}')


def test_the_input_it_reads_is_consumed_with_it(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1", "m2", "m3")
    assert rig.run("step_begin", drain=2, items=['{"n":1}', '{"n":2}']) == ["GO", 1, 1]
    assert rig.client.hgetall(rig.names(TID)["receipts"]) == {"m1": "consumed 1", "m2": "consumed 1", "m3": "accepted"}
    assert rig.history() == [{"n": 1}, {"n": 2}]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1
    assert rig.events()[-3:] == ["input.consumed", "input.consumed", "step.started"]


def test_what_cannot_be_paid_consumes_nothing(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1")
    rig.client.hset(rig.names(TID)["budget"], "steps_used", 2)
    assert rig.run("step_begin", drain=1, items=["{}"]) == ["SPENT", "steps"]
    assert rig.run("step_begin", fence=0, drain=1, items=["{}"]) == ["LOST"]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1
    assert rig.history() == []


def test_the_newest_word_about_readiness_takes_the_place_of_the_older(rig: Rig) -> None:
    rig.owned()
    rig.run("hold_place")
    wait = {"id": "ready:m1", "timeout_ms": 500, "policy": "deny", "reason": "so"}
    rig.run("step_begin", ready=json.dumps(wait))
    holds = json.loads(rig.turn()["holds"])
    assert {name: hold["kind"] for name, hold in holds.items()} == {"h1": "hold", "ready:m1": "readiness"}
    rig.run("step_begin", asked="1:2", ready="ready")
    assert list(json.loads(rig.turn()["holds"])) == ["h1"]


def test_a_review_reads_into_its_own_history(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    put(rig, "m1")
    rig.run("step_begin", drain=1, items=['{"n":1}'])
    assert rig.history() == []
    assert rig.client.lrange(rig.names(TID)["turn"] + ":history", 0, -1) == ['{"n":1}']


def test_a_context_that_fills_is_told_once_and_its_most_is_kept(rig: Rig) -> None:
    rig.owned()
    rig.run("step_begin", full=72)
    rig.run("step_begin", asked="1:2", full=91)
    rig.run("step_begin", asked="1:3", full=80)
    assert rig.events().count("notice") == 1
    assert rig.turn()["context_full"] == "91"


def test_a_budget_that_is_not_granted_yet_begins_nothing(rig: Rig) -> None:
    rig.owned()
    put(rig, "m1")
    assert held(rig, drain=1, items=["{}"])[:2] == ["MONEY", "short"]
    assert rig.client.llen(rig.names(TID)["mailbox"]) == 1


# step_delta.lua: text while it is written.


def test_each_text_is_told_once(rig: Rig) -> None:
    rig.owned()
    for part, kind in (("1:1", "reasoning.delta"), ("1:1", "reasoning.delta"), ("1:2", "text.delta")):
        assert rig.run("step_delta", part=part, kind=kind, text="a") == ["OK"]
    assert rig.events() == ["turn.active", "reasoning.delta", "text.delta"]


def test_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_delta", owner="w2", kind="text.delta") == ["LOST"]
    assert rig.run("step_delta", fence=2, kind="text.delta") == ["LOST"]


# step_commit.lua: a reply's calls.


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


# step_retry.lua: the model is asked again.


def test_each_retry_is_told_once(rig: Rig) -> None:
    rig.owned()
    for part in ("1:1", "1:2"):
        assert rig.run("step_retry", part=part, kind="rate_limited", wait_ms=1500, model="") == ["OK"]
    assert rig.events() == ["turn.active", "step.retried", "step.retried"]


def test_step_retry_only_the_owner_tells(rig: Rig) -> None:
    rig.owned()
    assert rig.run("step_retry", owner="w2", kind="server", wait_ms=1, model="") == ["LOST"]
    assert rig.run("step_retry", fence=2, kind="server", wait_ms=1, model="") == ["LOST"]


def test_the_model_that_is_asked_then_is_named_where_there_are_several(rig: Rig) -> None:
    rig.owned()
    for part, model in (("1:1", ""), ("1:2", "openai:gpt-4.1")):
        rig.run("step_retry", part=part, kind="server", wait_ms=0, model=model)
    rows = rig.client.xrange(rig.names(TID)["events"])
    told = [json.loads(event["data"]).get("model") for _, event in rows if event["kind"] == "step.retried"]
    assert told == [None, "openai:gpt-4.1"]
