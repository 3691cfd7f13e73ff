"""Looking at turns and changing them, where no worker moves them on."""

from __future__ import annotations

import json

import pytest

from brainq.adapters.sql.database import Transaction
from brainq.adapters.sql.migrations.upgrade import HEAD
from brainq.adapters.sql.store import Store
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.errors import ExitCode
from brainq.runtime.settings.deployment import Settings
from tests.support.commands import Brainq


def end_in_sql(store: Store, turn_id: str, session_id: str, ending: Ending = Ending.COMPLETED) -> None:
    result = TurnResult(
        turn_id=turn_id, session_id=session_id, text="An answer.", ending=ending, stop_reason=StopReason.ANSWERED
    )

    def write(connection: Transaction) -> None:
        store.turns.write_result(connection, result)

    store.steps.run_once(turn_id, "log", f"{turn_id}:log", write)


def test_a_submit_without_waiting_prints_the_id_and_the_same_key_is_the_same_turn(brainq: Brainq) -> None:
    first = brainq("submit", "s1", "hello", "--no-wait", "--request-key", "k1")
    again = brainq("submit", "s1", "hello", "--no-wait", "--request-key", "k1", "--json")
    assert first.code == 0
    assert json.loads(again.out) == {"turn_id": first.out.strip(), "session_id": "s1", "created": False}


def test_a_wait_that_runs_out_is_7_and_says_how_to_go_on(brainq: Brainq) -> None:
    for extra in ((), ("--follow",)):
        ran = brainq("submit", "s1", "hello", "--timeout-s", "0.2", *extra)
        assert ran.code == ExitCode.WAITED_OUT
        assert "brainq tail" in ran.err


def test_bad_input_is_refused_and_named(brainq: Brainq) -> None:
    assert (ran := brainq("submit", "bad session", "hi")).code == ExitCode.USAGE
    assert "session_id" in ran.err
    brainq("submit", "s1", "hi", "--no-wait", "--request-key", "k1")
    assert brainq("submit", "s1", "other", "--no-wait", "--request-key", "k1").code == ExitCode.USAGE


def test_the_list_joins_sql_with_what_redis_says_of_open_turns(brainq: Brainq, client: Client) -> None:
    ended = client.submit("s0", "zero").turn_id
    end_in_sql(wiring_of(client).store, ended, "s0")
    active, queued = (client.submit("s1", text).turn_id for text in ("one", "two"))
    rows = {row["turn_id"]: row for row in json.loads(brainq("list", "--json").out)}
    assert list(rows) == [queued, active, ended]
    assert (rows[ended]["state"], rows[ended]["stop_reason"]) == ("completed", "answered")
    assert rows[active]["note"].startswith("step 1 of 20 is next; a coordinator is called")
    assert rows[queued]["note"] == f"queued behind the live turn {active} of its session"
    table = brainq("list").out.splitlines()
    assert table[0].split() == ["turn", "session", "state", "accepted", "took", "message", "note"]
    assert table[1].split()[:3] == [queued, "s1", "queued"]
    assert [row["turn_id"] for row in json.loads(brainq("list", "--state", "queued", "--json").out)] == [queued]
    assert [row["turn_id"] for row in json.loads(brainq("list", "--session", "s0", "--json").out)] == [ended]
    assert len(json.loads(brainq("list", "--limit", "1", "--json").out)) == 1
    behind = json.loads(brainq("list", "--after", active, "--json").out)
    assert [row["turn_id"] for row in behind] == [ended]


def test_the_list_finds_metadata_and_tags(brainq: Brainq, client: Client) -> None:
    one = client.submit("s1", "one", metadata={"customer": 42}, prompt_tags=["billing"]).turn_id
    client.submit("s2", "two", metadata={"customer": 7}, prompt_tags=["billing", "eu"])

    def found(*asked: str) -> list[str]:
        return [row["turn_id"] for row in json.loads(brainq("list", *asked, "--json").out)]

    assert found("--metadata", "customer=42") == found("--metadata", "customer=42", "--tag", "billing") == [one]
    assert found("--metadata", "customer=42", "--tag", "eu") == []
    assert len(found("--tag", "billing")) == 2
    wrong = brainq("list", "--metadata", "customer")
    assert wrong.code == ExitCode.USAGE
    assert "'customer' is not name=value" in wrong.err


def test_a_turn_is_found_by_its_id_its_beginning_or_its_request_key(brainq: Brainq, client: Client) -> None:
    client.submit("s1", "one", turn_id="alpha-1", request_key="order-7")
    client.submit("s1", "two", turn_id="alpha-22")
    for sought in ("alpha-1", "order-7"):
        assert json.loads(brainq("show", sought, "--json").out)["turn_id"] == "alpha-1"
    assert json.loads(brainq("show", "alpha-2", "--json").out)["turn_id"] == "alpha-22"
    assert (several := brainq("show", "alpha")).code == ExitCode.USAGE
    assert "alpha-1" in several.err
    assert (none := brainq("show", "beta")).code == ExitCode.NOT_FOUND
    assert "brainq list" in none.err


def test_show_says_what_happens_next_and_what_is_left(brainq: Brainq, client: Client) -> None:
    turn = client.submit("s1", "tell me", limits={"max_steps": 3}).turn_id
    page = brainq("show", turn)
    assert page.code == 0
    assert "step 1 of 3 is next; a coordinator is called" in page.out
    assert "no coordinator owns it, fence 0" in page.out
    assert "tell me" in page.out
    assert "of 3" in page.out
    facts = json.loads(brainq("show", turn, "--json").out)
    assert facts["state"] == "active"
    assert facts["redis"]["budget"]["steps_max"] == 3


def test_show_tells_of_a_turn_that_only_sql_still_knows(brainq: Brainq, client: Client) -> None:
    turn = client.submit("s1", "hello").turn_id
    end_in_sql(wiring_of(client).store, turn, "s1")
    wiring_of(client).state.redis.flushall()
    page = brainq("show", turn)
    assert "nothing more happens" in page.out
    assert "An answer." in page.out
    tail = brainq("tail", turn)
    assert (tail.code, tail.out) == (0, "")
    assert "no longer in Redis" in tail.err


def test_without_redis_the_list_and_show_go_on_from_sql(
    brainq: Brainq, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = client.submit("s1", "hello").turn_id
    monkeypatch.setenv("BRAINQ_REDIS_URL", "redis://:secret@127.0.0.1:1/0")
    listed = brainq("list", "--json")
    assert json.loads(listed.out)[0]["state"] == "accepted"
    assert "does not answer" in listed.err
    assert "secret" not in listed.err
    assert "Redis is unreachable" in listed.err
    assert json.loads(brainq("show", turn, "--json").out)["redis"] is None
    assert brainq("tail", turn).code == ExitCode.SETUP
    assert brainq("submit", "s1", "hi").code == ExitCode.SETUP


def test_a_queued_turn_is_cancelled_at_once_and_a_live_one_asked(brainq: Brainq, client: Client) -> None:
    live, queued = (client.submit("s1", text).turn_id for text in ("one", "two"))
    assert json.loads(brainq("cancel", queued, "--json").out)["cancel"] == "cancelled"
    asked = brainq("cancel", live, "--reason", "enough")
    assert (asked.code, "will be cancelled" in asked.err) == (0, True)
    assert "ends next as cancelled" in brainq("show", live).out
    assert "closing as cancelled" in brainq("show", queued).out
    assert "nothing to cancel" in brainq("cancel", queued).err


def test_a_tail_resumes_behind_a_number_and_ends_at_the_final_event(brainq: Brainq, client: Client) -> None:
    turn = client.submit("s1", "hello").turn_id
    key = wiring_of(client).state.keys.turn("s1", turn) + ":events"
    data = json.dumps({"ending": "completed", "stop_reason": "answered", "elapsed_ms": 5})
    wiring_of(client).state.redis.xadd(key, {"kind": "result", "at": "1", "data": data}, id="2-0")
    lines = brainq("tail", turn).out.splitlines()
    assert [line.split()[2] for line in lines] == ["active", "completed"]
    resumed = brainq("tail", turn, "--after", "1", "--json").out.splitlines()
    assert [json.loads(line)["kind"] for line in resumed] == ["result"]


def test_a_rejected_turn_says_why(brainq: Brainq, client: Client) -> None:
    wiring_of(client).store.turns.reject("bad-1", "bad-1", "s1", "user_message: it is empty", {})
    assert "user_message: it is empty" in brainq("show", "bad-1").out
    assert "user_message: it is empty" in brainq("tail", "bad-1").err
    assert brainq("cancel", "bad-1").code == ExitCode.FAILED


def test_the_schema_is_upgraded_and_again(brainq: Brainq, settings: Settings) -> None:
    for _ in range(2):
        assert (ran := brainq("db", "upgrade")).code == 0
        assert HEAD in ran.err
