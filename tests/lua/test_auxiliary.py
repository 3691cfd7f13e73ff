"""The scripts of the work before a step: auxiliary calls, compaction, the opening wave and hooks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.lua.rig import LEASE_MS, TID, WRITE, Rig
from tests.lua.test_sessions import opened
from tests.support.money import money

# aux_begin.lua: a model call beside the steps is tried once a mark.


def test_a_reflection_is_paid_for_once_a_step(rig: Rig) -> None:
    rig.owned(max_reflections=2)
    budget = rig.names(TID)["budget"]
    assert rig.run("aux_begin", kind="reflection", mark="1") == ["GO"]
    assert rig.run("aux_begin", kind="reflection", mark="1") == ["DONE"]
    assert rig.client.hget(budget, "reflections_used") == "1"
    assert rig.run("aux_begin", kind="reflection", mark="2") == ["GO"]
    assert rig.run("aux_begin", kind="reflection", mark="3") == ["SPENT", "reflections"]
    assert rig.client.hget(budget, "reflections_used") == "2"


def test_a_compaction_costs_no_reflection(rig: Rig) -> None:
    rig.owned(max_reflections=0)
    assert rig.run("aux_begin", kind="compaction", mark="900") == ["GO"]
    assert rig.run("aux_begin", kind="compaction", mark="900") == ["DONE"]
    assert rig.turn()["aux_compaction"] == "900"


def test_only_the_owner_begins(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_begin", kind="reflection", owner="w2") == ["LOST"]
    assert rig.run("aux_begin", kind="reflection", fence=0) == ["LOST"]


def test_one_that_would_pass_the_budget_is_not_made(rig: Rig) -> None:
    rig.owned(max_reflections=9, max_total_tokens=100, max_cost_usd=0.5)
    assert rig.run("aux_begin", kind="reflection", mark="1", tokens=101) == ["SPENT", "tokens"]
    assert rig.run("aux_begin", kind="reflection", mark="2", tokens=9, usd="0.6") == ["SPENT", "cost"]
    assert rig.client.hget(rig.names(TID)["budget"], "reflections_used") is None
    assert rig.run("aux_begin", kind="reflection", mark="3", tokens=100, usd="0.5") == ["GO"]


def test_one_whose_worker_is_lost_is_charged(rig: Rig) -> None:
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70, usd="0.25")
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hmget(rig.names(TID)["budget"], "input_tokens", "cost_usd") == ["70", "0.25"]
    (spend,) = rig.client.lrange(rig.names(TID)["spends"], 0, -1)
    assert json.loads(spend) == {"kind": "lost", "step": 0, "input_tokens": 70, "cost_usd": 0.25, "estimated": True}
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w3", fence=2, most_lost=9)[0] == "GO"
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "70"


def test_one_whose_worker_is_lost_names_its_model(rig: Rig) -> None:
    spend = {"kind": "lost", "step": 0, "model": "m", "input_tokens": 60, "cost_usd": 0.5, "estimated": True}
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70, under_way=json.dumps([spend]))
    rig.pass_ms(LEASE_MS + 1)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hmget(rig.names(TID)["budget"], "input_tokens", "cost_usd") == ["60", "0.5"]
    assert [json.loads(one) for one in rig.client.lrange(rig.names(TID)["spends"], 0, -1)] == [spend]


def test_one_that_was_committed_is_not_charged_again(rig: Rig) -> None:
    rig.owned()
    rig.run("aux_begin", kind="reflection", mark="1", tokens=70)
    rig.run("aux_commit", kind="reflection", input=50)
    assert rig.run("turn_claim", owner="w2")[0] == "GO"
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "50"


def test_one_that_a_budget_does_not_allow_was_not_tried(rig: Rig) -> None:
    rig.owned()
    assert rig.run("aux_begin", kind="reflection", mark="1", money=money(rig))[:2] == ["MONEY", "short"]
    assert "aux_reflection" not in rig.turn()


# aux_commit.lua: a reflection's note, and the step rung.


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


# history_compact.lua: the oldest messages give way to a summary.


def said(rig: Rig, *names: str) -> None:
    rig.client.rpush(rig.names(TID)["history"], *(json.dumps({"n": name}) for name in names))


def compact(rig: Rig, **given: Any) -> list[Any]:
    chosen: dict[str, Any] = {"expect": 4, "drop": 2, "items": ['{"n":"summary"}'], "why": "", **given}
    return rig.run("history_compact", **chosen)


def names(rig: Rig) -> list[str]:
    return [message["n"] for message in rig.history()]


def test_the_oldest_go_and_the_front_comes(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    rig.bells("brainq.turns")
    assert compact(rig, items=['{"n":"summary"}', '{"n":"user"}'], input=9, output=1) == ["COMPACTED"]
    assert "unsummarised" not in rig.turn()
    assert names(rig) == ["summary", "user", "c", "d"]
    assert rig.turn()["compacted"] == "1"
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.client.hget(rig.names(TID)["budget"], "input_tokens") == "9"
    assert rig.events()[-1] == "compaction"


def test_the_place_of_a_turn_is_counted_on(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c")
    rig.run("turn_begin", items=['{"n":"mine"}'])
    assert rig.turn()["begin_at"] == "3"
    assert compact(rig, drop=3) == ["COMPACTED"]
    trimmed = int(rig.client.hget(rig.names(TID)["session"], "trimmed"))
    assert names(rig)[3 - trimmed] == "mine"


def test_a_history_that_changed_is_left_alone(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d", "e")
    assert compact(rig) == ["CHANGED"]
    assert names(rig) == ["a", "b", "c", "d", "e"]


def test_only_the_owner_compacts(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    assert compact(rig, owner="w2") == ["LOST"]
    assert compact(rig, fence=0) == ["LOST"]
    assert names(rig) == ["a", "b", "c", "d"]


def test_reads_that_are_gone_may_be_repeated(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    guard = rig.names(TID)["guard"]
    rig.client.hset(guard, mapping={"f1": 0, "f2": 0, "f3": 1})
    assert compact(rig, forget="f1 f3") == ["COMPACTED"]
    assert rig.client.hgetall(guard) == {"f2": "0"}


def test_a_review_compacts_its_own_history(rig: Rig) -> None:
    rig.owned(isolated="1", turn_kind="review")
    said(rig, "kept")
    own = rig.names(TID)["turn"] + ":history"
    rig.client.rpush(own, *(json.dumps({"n": name}) for name in "abcd"))
    assert compact(rig) == ["COMPACTED"]
    assert names(rig) == ["kept"]
    assert [json.loads(item)["n"] for item in rig.client.lrange(own, 0, -1)] == ["summary", "c", "d"]
    assert rig.turn()["trimmed"] == "1"
    assert rig.client.hget(rig.names(TID)["session"], "trimmed") is None


def test_what_processes_know_of_the_history_is_void(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    session = rig.names(TID)["session"]
    rig.client.hset(session, "history_stamp", "7")
    assert compact(rig) == ["COMPACTED"]
    assert rig.client.hget(session, "history_stamp") not in (None, "7")


def test_why_no_model_wrote_the_summary_is_kept(rig: Rig) -> None:
    rig.owned()
    said(rig, "a", "b", "c", "d")
    assert compact(rig, why="refused") == ["COMPACTED"]
    assert rig.turn()["unsummarised"] == "refused"


# opening_skip.lua: going on without memory and pack.


def test_it_waits_for_its_time(rig: Rig) -> None:
    opened(rig)
    assert rig.run("opening_skip") == ["EARLY"]
    assert rig.status("c0-0") == "dispatched"


def test_open_calls_time_out_and_the_first_step_is_rung(rig: Rig) -> None:
    opened(rig)
    rig.run("call_claim", call="c0-0")
    rig.run("call_settle", call="c0-0")
    rig.run("call_claim", call="c0-1", lease_ms=60_000)
    rig.pass_ms(10_000)
    assert rig.run("turn_sweep")[2] == "skip"
    assert rig.run("opening_skip") == ["SKIPPED"]
    assert [rig.status("c0-0"), rig.status("c0-1")] == ["completed", "timed_out"]
    assert rig.bells("brainq.turns") == [["s1", "t01", 1]]
    assert rig.turn()["awaits"] == "coordinator"


def test_what_comes_later_is_late(rig: Rig) -> None:
    opened(rig)
    rig.run("call_claim", call="c0-1", lease_ms=60_000)
    rig.pass_ms(10_000)
    rig.run("opening_skip")
    history = rig.history()
    assert rig.run("call_settle", call="c0-1") == ["LATE", "timed_out"]
    assert rig.status("c0-1") == "timed_out_late"
    assert rig.history() == history


def test_a_turn_past_it_is_left_alone(rig: Rig) -> None:
    rig.committed({})
    rig.pass_ms(20_000)
    assert rig.run("opening_skip") == ["ALREADY"]
    assert "skip" not in rig.run("turn_sweep")[2]


# hooks_done.lua: calls that no worker ended, of which the brain's hook has heard.


SPEC = '{"arguments":{"n":1},"hook":true}'


def due(rig: Rig) -> tuple[Any, Any]:
    names = rig.names(TID)
    return rig.client.hget(names["turn"], "hooks_due"), rig.client.hget(names["trace"], "c1-0:hook")


def lapsed(rig: Rig, spec: str) -> None:
    rig.running(spec=spec, **WRITE)
    rig.pass_ms(LEASE_MS)
    assert rig.run("call_give_up", status="unknown", outcome='{"kind":"unknown"}') == ["SETTLED"]


def test_a_call_that_no_worker_ended_is_due_until_its_owner_says_that_it_was_told(rig: Rig) -> None:
    lapsed(rig, SPEC)
    assert due(rig) == ("c1-0", '{"kind":"unknown"}\n' + SPEC)
    rig.run("turn_claim", fence=1)
    assert rig.run("hooks_done", fence=1, calls="c1-0") == ["LOST"]
    assert due(rig)[0] == "c1-0"
    assert rig.run("hooks_done", fence=2, calls="c1-0") == ["DONE"]
    assert due(rig) == (None, None)


@pytest.mark.parametrize("spec", ['{"arguments":{"n":1}}', '{"arguments":{},"metadata":{"hook":true}}'])
def test_nothing_is_kept_where_the_brain_has_no_hook(rig: Rig, spec: str) -> None:
    lapsed(rig, spec)
    assert due(rig) == (None, None)


def test_others_stay_due(rig: Rig) -> None:
    lapsed(rig, SPEC)
    rig.client.hset(rig.names(TID)["turn"], "hooks_due", "c1-0 c1-1")
    rig.run("turn_claim", fence=1)
    assert rig.run("hooks_done", fence=2, calls="c1-0") == ["DONE"]
    assert due(rig)[0] == "c1-1"
