"""The verbs of people from the command line: a turn is driven by hand, and other processes' commands speak into it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq.client.handle import TurnHandle
from brainq.contracts.ids import split_call_id
from brainq.engine.brain.brains import load_brains
from brainq.errors import ExitCode
from brainq.runtime.settings.deployment import Settings
from tests.support.commands import Brainq
from tests.support.pump import Pump

BRAIN = """
from brainq import Brain, Effect, Pending, RunContext, ScriptedProvider
from brainq.engine.models.scripted import calls, says


def obey(request):
    if request.step == 1 and "write" in request.messages[-1].content:
        return calls(("write", {"name": "a", "text": "hello"}), ("look", {}))
    if request.step == 1 and "order" in request.messages[-1].content:
        return calls(("order", {"item": "tea"}))
    return says(f"Read: {request.messages[-1].content}")


brain = Brain("cli", ScriptedProvider(rules=obey))


@brain.tool(effect=Effect.READ_ONLY)
def look() -> str:
    "Look."
    return "nothing"


@brain.tool(effect=Effect.LOCAL_WRITE, approval="writes are looked at")
def write(name: str, text: str) -> str:
    "Write."
    return f"wrote {text} to {name}"


@brain.tool(effect=Effect.NETWORK)
def order(context: RunContext, item: str) -> Pending:
    "Order."
    return Pending("job-7", timeout_s=60)
"""


@pytest.fixture
def pump(settings: Settings, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pump]:
    (tmp_path / "people_brain.py").write_text(BRAIN)
    monkeypatch.setenv("BRAINQ_APP", "people_brain:brain")
    sql_url = settings.sql_url.get_secret_value()
    with Pump(load_brains("people_brain:brain").default, redis_url, sql_url) as pump:
        yield pump


def parked(pump: Pump, message: str = "write it") -> TurnHandle:
    """A turn that waits for somebody."""
    handle = pump.submit("s1", message)
    pump.drain()
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert snapshot.state == "parked"
    return handle


def printed(brainq: Brainq, *arguments: str) -> Any:
    ran = brainq(*arguments, "--json")
    assert ran.code == 0, ran.err
    return json.loads(ran.out)


def test_a_call_is_listed_approved_and_goes_on(brainq: Brainq, pump: Pump) -> None:
    handle = parked(pump)
    (listed,) = printed(brainq, "approvals")
    approval = f"{handle.turn_id}-c1-0"
    assert (listed["id"], listed["arguments"]) == (approval, {"name": "a", "text": "hello"})
    table = brainq("approvals", "--session", "s1").out
    assert approval in table
    assert '{"name": "a", "text": "hello"}' in table
    assert "expires in" in table
    assert "writes are looked at" in table
    assert "no approvals" in brainq("approvals", "--session", "s2").err
    assert printed(brainq, "approvals", "--after", approval) == []
    assert brainq("approvals", "--after", "t-9-c1-0").code == ExitCode.USAGE
    page = brainq("show", handle.turn_id).out
    assert f"brainq approve {approval}" in page
    assert "waiting for an approval" in page
    said = brainq("approve", f"{handle.turn_id[:20]}-c1-0", "--by", "ada")
    assert (said.code, "is approved by ada" in said.err) == (0, True)
    assert brainq("approve", approval).code == 0
    refused = brainq("deny", approval)
    assert (refused.code, "approved by ada" in refused.err) == (ExitCode.REFUSED, True)
    assert pump.finish(handle).text == "Read: nothing"
    tail = brainq("tail", handle.turn_id).out
    assert "for an approval" in tail
    assert "until a person approves it" in tail
    assert "approved" in tail
    assert printed(brainq, "approvals") == []
    assert [row["state"] for row in printed(brainq, "approvals", "--state", "all")] == ["approved"]
    assert "approved" in brainq("show", handle.turn_id).out


def test_a_submit_that_waits_says_for_what_its_turn_is_parked(brainq: Brainq, pump: Pump) -> None:
    handle = parked(pump)
    ran = brainq("submit", "s1", "write it", "--request-key", handle.turn_id, "--timeout-s", "2.5")
    assert ran.code == ExitCode.WAITED_OUT
    assert "waits for a person's approval of c1-0 write" in ran.err
    assert f"brainq show {handle.turn_id}" in ran.err


def test_a_denied_call_tells_the_model_why(brainq: Brainq, pump: Pump) -> None:
    handle = parked(pump)
    assert printed(brainq, "deny", f"{handle.turn_id}-c1-0", "--reason", "not today")["state"] == "denied"
    pump.finish(handle)
    details = pump.wiring.store.transcripts.of_turn(handle.turn_id)
    assert "not today" in str(details)


def test_a_call_runs_with_a_persons_arguments(brainq: Brainq, pump: Pump, tmp_path: Path) -> None:
    approval = f"{parked(pump).turn_id}-c1-0"
    for wrong in ("{", "[1]", "@none.json", '{"name": "b"}', '{"name": "b", "text": 3}'):
        ran = brainq("approve", approval, "--arguments", wrong)
        assert (ran.code, "arguments" in ran.err) == (ExitCode.USAGE, True)
    (tmp_path / "given.json").write_text('{"name": "b", "text": "bye"}')
    found = printed(brainq, "approve", approval, "--arguments", "@given.json")
    assert (found["state"], found["edited"]) == ("approved", True)
    pump.drain()
    row = pump.wiring.store.approvals.get(*split_call_id(approval))
    assert row is not None
    assert row.arguments == {"name": "b", "text": "bye"}


def test_what_is_no_approval_is_named(brainq: Brainq, pump: Pump) -> None:
    turn = pump.submit("s1", "hello").turn_id
    assert brainq("approve", "nonsense").code == ExitCode.USAGE
    assert brainq("approve", "nobody-c1-0").code == ExitCode.NOT_FOUND
    assert brainq("deny", f"{turn}-c9-9").code == ExitCode.NOT_FOUND
    assert brainq("approvals", "--state", "odd").code == ExitCode.USAGE


def test_input_goes_into_a_turn_and_its_receipt_says_what_became_of_it(brainq: Brainq, pump: Pump) -> None:
    handle = parked(pump)
    said = brainq("steer", handle.turn_id, "Use the blue one", "--id", "msg-1", "--expect", handle.turn_id)
    assert (said.code, "waits for the turn's next step" in said.err) == (0, True)
    assert printed(brainq, "steer", handle.turn_id, "Use the blue one", "--id", "msg-1")["state"] == "accepted"
    assert brainq("steer", handle.turn_id, "Another", "--id", "msg-1").code == ExitCode.USAGE
    assert "waits for the turn's next step" in brainq("show", handle.turn_id).out
    brainq("approve", f"{handle.turn_id}-c1-0")
    assert "Use the blue one" in pump.finish(handle).text
    (shown,) = printed(brainq, "show", handle.turn_id)["inputs"]
    assert (shown["text"], shown["state"], shown["step"]) == ("Use the blue one", "consumed", 2)
    assert "was read by step 2" in brainq("show", handle.turn_id).out
    bounced = printed(brainq, "steer", handle.turn_id, "Too late")
    assert bounced["state"] == "bounced"
    stale = brainq("steer", handle.turn_id, "Too late", "--expect", handle.turn_id)
    assert (stale.code, "not live" in stale.err) == (ExitCode.REFUSED, True)
    assert pump.finish(pump.client.handle(bounced["bounced_turn_id"])).text == "Read: Too late"


def test_input_that_says_nothing_is_refused(brainq: Brainq, pump: Pump) -> None:
    turn = pump.submit("s1", "hello").turn_id
    assert brainq("steer", turn, "").code == ExitCode.USAGE
    assert brainq("steer", turn, "", "--not-ready").code == 0
    assert brainq("steer", turn, "x", "--id", "a b").code == ExitCode.USAGE


def test_a_held_turn_changes_nothing_until_it_is_released(brainq: Brainq, pump: Pump) -> None:
    handle = pump.submit("s1", "order it")
    hold = brainq("hold", handle.turn_id, "--reason", "looking", "--expires-in-s", "60")
    assert (hold.code, "brainq release" in hold.err) == (0, True)
    second = printed(brainq, "hold", handle.turn_id)["hold"]
    pump.drain()
    page = brainq("show", handle.turn_id).out
    assert "looking" in page
    assert f"brainq release {handle.turn_id} {second}" in page
    assert "waiting for the release of a hold" in page
    assert brainq("release", handle.turn_id, "hold-").code == ExitCode.USAGE
    assert printed(brainq, "release", handle.turn_id, hold.out.strip()) == {
        "turn_id": handle.turn_id,
        "released": [hold.out.strip()],
        "left": 1,
    }
    gone = brainq("release", handle.turn_id, hold.out.strip())
    assert (gone.code, "no open hold" in gone.err, second in gone.err) == (ExitCode.NOT_FOUND, True, True)
    assert "1 more" not in brainq("release", handle.turn_id, "all").err
    pump.drain()
    page = brainq("show", handle.turn_id).out
    assert "waiting for a result from outside" in page
    assert "brainq complete TOKEN JSON" in page
    left_standing = brainq("hold", handle.turn_id).out.strip()
    assert pump.client.complete_call("job-7", "tea is coming") == "settled"
    assert pump.finish(handle).text == "Read: tea is coming"
    assert left_standing not in brainq("show", handle.turn_id).out, "there is nothing left to let go"
    tail = brainq("tail", handle.turn_id).out
    assert "looking" in tail
    assert "the deadline is paused" in tail
    ended = brainq("hold", handle.turn_id)
    assert (ended.code, "has ended" in ended.err) == (ExitCode.USAGE, True)


@pytest.mark.parametrize(
    "options", [("--expires-in-s", "0"), ("--expires-in-s", "nan"), ("--on-expiry", "odd"), ("--reason", "x" * 501)]
)
def test_a_hold_that_makes_no_sense_is_refused(brainq: Brainq, pump: Pump, options: tuple[str, ...]) -> None:
    assert brainq("hold", pump.submit("s1", "hello").turn_id, *options).code == ExitCode.USAGE


def test_a_session_is_shown_paused_and_resumed(brainq: Brainq, pump: Pump) -> None:
    live = parked(pump)
    assert "paused" in brainq("pause", "s1").err
    assert "already paused" in brainq("pause", "s1").err
    waiting = pump.submit("s1", "hello").turn_id
    flag = pump.client.session("s1").readiness("not yet")
    shown = printed(brainq, "session", "s1")
    assert (shown["live"], shown["paused"], shown["flags"]) == (live.turn_id, True, [flag.id])
    assert [(turn["turn_id"], turn["place"]) for turn in shown["waiting"]] == [(waiting, 1)]
    page = brainq("session", "s1").out
    assert all(found in page for found in (live.turn_id, waiting, flag.id, "brainq approve", "brainq resume"))
    live.cancel()
    pump.settle(live)
    assert printed(brainq, "session", "s1")["live"] is None
    assert printed(brainq, "resume", "s1")["live"] == waiting
    assert "was not paused" in brainq("resume", "s1").err
    assert "this session has no turns" in brainq("session", "s9").out
    assert brainq("session", "a b").code == ExitCode.USAGE
    assert brainq("pause", "a b").code == ExitCode.USAGE


def test_a_submit_says_what_a_busy_session_does(brainq: Brainq, pump: Pump) -> None:
    live = parked(pump)
    busy = brainq("submit", "s1", "more", "--no-wait", "--on-busy", "reject")
    assert (busy.code, live.turn_id in busy.err) == (ExitCode.REFUSED, True)
    joined = printed(brainq, "submit", "s1", "more", "--no-wait", "--on-busy", "steer")
    assert (joined["turn_id"], joined["receipt"]["state"]) == (live.turn_id, "accepted")
    assert brainq("submit", "s1", "more", "--on-busy", "odd").code == ExitCode.USAGE


def test_without_redis_approvals_are_those_of_sql(brainq: Brainq, pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    approval = f"{parked(pump).turn_id}-c1-0"
    monkeypatch.setenv("BRAINQ_REDIS_URL", "redis://127.0.0.1:1/0")
    listed = brainq("approvals", "--json")
    assert [row["id"] for row in json.loads(listed.out)] == [approval]
    assert "Redis is unreachable" in listed.err
    assert f"brainq approve {approval}" in brainq("show", split_call_id(approval)[0]).out
    assert brainq("approve", approval).code == ExitCode.SETUP
