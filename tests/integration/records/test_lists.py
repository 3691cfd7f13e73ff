"""Lists of turns and sessions: from SQL and Redis, each turn once and as it stands."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brainq import (
    Approvals,
    AsyncClient,
    Brain,
    Client,
    Effect,
    InvalidInput,
    ListedTurn,
    ScriptedProvider,
    StopReason,
    TurnHandle,
)
from brainq.adapters.redis.connection import Client as RedisClient
from brainq.client import lists
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from tests.support.pump import Pump


def obey(request: ModelRequest) -> ModelReply | ScriptedFailure:
    said = request.messages[-1].content
    if said == "break":
        return fails("refused", retryable=False, message="the model broke")
    return calls((said, {})) if said in ("save", "fail") and request.step == 1 else says("Done.")


def shop(**more: Any) -> Brain:
    brain = Brain("lister", ScriptedProvider(rules=obey), approvals=Approvals(effects=(Effect.LOCAL_WRITE,)), **more)

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def save() -> str:
        "Save."
        return "saved"

    @brain.tool(effect=Effect.READ_ONLY)
    def fail() -> str:
        "Fail."
        raise ValueError("no")

    return brain


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(shop())


def ids(turns: tuple[ListedTurn, ...]) -> list[str]:
    return [turn.turn_id for turn in turns]


def test_a_turn_is_listed_as_it_stands_from_the_submit_to_its_end(pump: Pump) -> None:
    handle = pump.submit("s1", "save")
    queued = pump.submit("s1", "hello")

    def listed() -> ListedTurn:
        later, first = pump.client.turns()
        assert (later.turn_id, later.state) == (queued.turn_id, "queued")
        return first

    seen = listed()
    assert (seen.turn_id, seen.session_id, seen.state, seen.message) == (handle.turn_id, "s1", "active", "save")
    assert "a coordinator is called" in seen.note
    pump.drain()
    seen = listed()
    assert (seen.state, seen.awaits, seen.steps, seen.calls) == ("parked", "people", 1, 1)
    assert seen.note == "waits for a person's approval of c1-0 save"
    pump.client.approve(handle.approvals()[0].id)
    pump.finish(handle)
    pump.finish(queued)
    live = {turn.turn_id: turn for turn in pump.client.turns()}[handle.turn_id]
    assert (live.state, live.ending, live.stop_reason) == ("completed", "completed", StopReason.ANSWERED)
    assert (live.steps, live.calls, live.failed_calls, live.note, live.awaits) == (2, 1, 0, "answered", None)
    assert live.ended_at is not None
    pump.wiring.state.redis.flushall()
    assert {turn.turn_id: turn for turn in pump.client.turns()}[handle.turn_id] == live


def test_each_filter_finds_what_lives_and_what_has_ended(pump: Pump) -> None:
    client = pump.client
    # No turn's id holds "solo": its alphabet leaves out "l" and "o".
    ended, failing = pump.submit("solo", "hello"), pump.submit("s2", "fail")
    for handle in (ended, failing):
        pump.finish(handle)
    parked = pump.submit("s3", "save")
    waits = pump.submit("s3", "hello")
    pump.drain()
    failed_so_far = submit_and_stop_after_calls(pump, "s4")
    assert ids(client.turns()) == [each.turn_id for each in (failed_so_far, waits, parked, failing, ended)]
    assert ids(client.turns(failing=True)) == [failed_so_far.turn_id, failing.turn_id]
    assert ids(client.turns(state="parked")) == [parked.turn_id]
    assert ids(client.turns(state="queued")) == [waits.turn_id]
    assert ids(client.turns(state="closing")) == []
    assert ids(client.turns(state="accepted")) == [failed_so_far.turn_id, waits.turn_id, parked.turn_id]
    assert ids(client.turns(state="ended")) == [failing.turn_id, ended.turn_id]
    assert ids(client.turns(ending="completed", session="s2")) == [failing.turn_id]
    assert ids(client.turns(stop_reason="answered", text="solo")) == [ended.turn_id]
    now = datetime.now(UTC)
    assert ids(client.turns(since=now + timedelta(hours=1))) == []
    assert len(client.turns(since=now - timedelta(hours=1), until=now + timedelta(hours=1))) == 5


def submit_and_stop_after_calls(pump: Pump, session: str) -> TurnHandle:
    """A turn whose call has failed, and whose next step nobody has begun."""
    handle = pump.submit(session, "fail")
    while True:
        bell = pump.take()
        assert bell is not None
        pump.answer(bell)
        trace = (seen := handle.snapshot()) and seen.trace
        if trace and trace[0].status.is_settled:
            return handle


def test_pages_have_each_turn_once_while_turns_are_added(pump: Pump) -> None:
    handles = [pump.submit(f"s{number}", "hello") for number in range(7)]
    for handle in handles[1::2]:
        pump.finish(handle)
    seen = ids(pump.client.turns(limit=3))
    while page := pump.client.turns(limit=3, after=seen[-1]):
        pump.submit("new", "hello")
        seen += ids(page)
    assert seen == [handle.turn_id for handle in reversed(handles)]


def test_what_only_redis_knows_is_found_beyond_the_first_rows_it_is_asked_about(
    pump: Pump, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "REDIS_BATCH", 2)
    parked = [pump.submit(f"p{number}", "save") for number in range(2)]
    pump.drain()
    for number in range(5):
        pump.submit(f"s{number}", "hello")
    newest_first = [handle.turn_id for handle in reversed(parked)]
    assert ids(pump.client.turns(state="parked", limit=2)) == newest_first
    assert ids(pump.client.turns(state="parked", limit=1)) == newest_first[:1]


def test_what_redis_does_not_know_yet_or_no_longer_is_accepted(pump: Pump) -> None:
    handle = pump.submit("s1", "hello")
    pump.wiring.state.redis.flushall()
    (turn,) = pump.client.turns()
    assert (turn.turn_id, turn.state, turn.note) == (handle.turn_id, "accepted", "accepted; Redis does not know it")
    assert pump.client.turns(state="active") == ()
    assert ids(pump.client.turns(state="accepted")) == [handle.turn_id]


def test_a_page_takes_two_round_trips_however_many_turns(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        pump.submit(f"s{number}", "save")
    pump.drain()
    trips: list[int] = []
    many = RedisClient.many

    def counted(self: RedisClient, commands: Any) -> Any:
        trips.append(len(commands))
        return many(self, commands)

    monkeypatch.setattr(RedisClient, "many", counted)
    turns = pump.client.turns()
    assert [turn.state for turn in turns] == ["parked"] * 30
    assert len(trips) == 2
    trips.clear()
    assert len(pump.client.sessions()) == 30
    assert len(trips) == 3


def test_a_message_is_not_listed_where_content_is_not_kept(pumps: Callable[..., Pump]) -> None:
    pump = pumps(shop(redact_logs=True))
    handle = pump.submit("s1", "a secret")
    assert [turn.message for turn in pump.client.turns()] == ["a secret"]
    pump.finish(handle)
    assert [turn.message for turn in pump.client.turns()] == [""]


def test_what_was_given_up_makes_a_turn_failing(pump: Pump) -> None:
    handle = pump.submit("s1", "hello")
    pump.finish(handle)
    assert pump.client.turns(failing=True) == ()
    pump.wiring.store.steps.note_failure(handle.turn_id, "learner", "broken", 5, dead=True)
    (turn,) = pump.client.turns(failing=True)
    assert (turn.turn_id, turn.failed_calls, turn.dead_steps) == (handle.turn_id, 0, 1)


def test_a_search_reads_messages_answers_metadata_and_ids(pump: Pump) -> None:
    report = pump.submit("s1", "the quarterly report, please")
    metadata = {"customer": "A-42", "order": {"id": 7}}
    tagged = pump.client.submit("s-tagged", "hello", metadata=metadata, prompt_tags=["spring"])
    pump.drain()
    queued = pump.submit("s3", 'a Report on "50%" of it')
    for sought, found in (
        ("REPORT", [queued, report]),
        ("customer=A-42", [tagged]),
        ("order.id=7", [tagged]),
        ("spring", [tagged]),
        ("Done.", [tagged, report]),
        ('"50%"', [queued]),
        (report.turn_id, [report]),
        ("s-tagged", [tagged]),
        ("user_message", []),
        ("lister", []),
    ):
        assert ids(pump.client.turns(search=sought)) == [handle.turn_id for handle in found], sought
    assert ids(pump.client.turns(search="report", ending="completed")) == [report.turn_id]
    assert ids(pump.client.turns(search="report", state="active", session="s3")) == [queued.turn_id]
    first = pump.client.turns(search="report", limit=1)
    assert ids(pump.client.turns(search="report", after=first[-1].turn_id)) == [report.turn_id]


def test_a_search_looks_at_so_many_of_the_newest(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    old = pump.submit("s1", "an old report")
    for number in range(3):
        pump.submit(f"t{number}", "something else")
    assert ids(pump.client.turns(search="report")) == [old.turn_id]
    monkeypatch.setattr("brainq.adapters.sql.repositories.turn_lists.MAX_SEARCHED_TURNS", 3)
    assert ids(pump.client.turns(search="report")) == []
    before = pump.client.turns()[0].accepted_at
    assert ids(pump.client.turns(search="report", until=before)) == [old.turn_id]


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"metadata": {"customer": 42}}, [2, 1]),
        ({"metadata": {"customer": "42"}}, [2, 1]),
        ({"metadata": {"customer": 4}}, []),
        ({"metadata": {"order": {"id": "A-1"}}}, [1]),
        ({"metadata": {"order.id": "A-1", "customer": 42}}, [1]),
        ({"metadata": {"id": "A-1"}}, []),
        ({"metadata": {"regions": "north"}}, [0]),
        ({"metadata": {"is_paid": True}}, [0]),
        ({"metadata": {"note": 'say "hi" to Zoë'}}, [0]),
        ({"prompt_tags": ["billing"]}, [2, 0]),
        ({"prompt_tags": ["billing", "eu"]}, [0]),
        ({"prompt_tags": ["bill"]}, []),
        ({"prompt_tags": ["billing"], "metadata": {"customer": 42}}, [2]),
        ({"metadata": {"customer": 42}, "search": "look", "ending": "completed"}, [1]),
        ({"metadata": {"customer": 42}, "sort": "oldest"}, [1, 2]),
    ],
)
def test_turns_are_found_by_exactly_their_metadata_and_tags(
    pump: Pump, asked: dict[str, Any], found: list[int]
) -> None:
    paid = {"is_paid": True, "regions": ["north", "east"], "note": 'say "hi" to Zoë'}
    handles = [
        pump.submit("s1", "customer 42 of billing", metadata=paid, prompt_tags=["billing", "eu"]),
        pump.submit("s2", "look", metadata={"customer": 42, "order": {"id": "A-1"}}),
    ]
    pump.drain()
    handles.append(pump.submit("s3", "hello", metadata={"customer": "42"}, prompt_tags=["billing"]))
    assert ids(pump.client.turns(**asked)) == [handles[number].turn_id for number in found]


def test_what_has_no_end_is_read_page_by_page(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("paging", "client", "approvals", "async_client"):
        monkeypatch.setattr(f"brainq.client.{module}.PAGE_SIZE", 2)
    turns = [pump.submit(f"s{number}", "hello").turn_id for number in range(5)][::-1]
    client = pump.client
    assert ids(tuple(client.iterate_turns())) == turns
    assert ids(tuple(client.iterate_turns(session="s1"))) == [turns[3]]
    assert [one.session_id for one in client.iterate_sessions("s")] == [f"s{n}" for n in (4, 3, 2, 1, 0)]
    assert list(client.iterate_approvals()) == []

    async def ask() -> tuple[list[str], list[str], list[str]]:
        async with AsyncClient(pump.settings, pump.wiring.brains) as twin:
            return (
                [turn.turn_id async for turn in twin.iterate_turns(state="accepted")],
                [one.session_id async for one in twin.iterate_sessions()],
                [one.id async for one in twin.iterate_approvals()],
            )

    assert asyncio.run(ask()) == (turns, [f"s{n}" for n in (4, 3, 2, 1, 0)], [])


def test_lists_are_sorted_page_by_page(pump: Pump) -> None:
    handles = [pump.submit(f"s{number}", said) for number, said in enumerate(("hi", "fail", "hello"))]
    pump.drain()
    live = pump.submit("s9", "save")
    oldest = [handle.turn_id for handle in (*handles, live)]
    assert ids(pump.client.turns(sort="oldest")) == oldest
    first = pump.client.turns(sort="oldest", limit=3)
    assert ids(pump.client.turns(sort="oldest", limit=3, after=first[-1].turn_id)) == oldest[3:]
    by_tokens = pump.client.turns(sort="tokens")
    assert [turn.tokens for turn in by_tokens] == sorted((turn.tokens for turn in by_tokens), reverse=True)
    assert by_tokens[0].turn_id == handles[1].turn_id, "it took two steps"
    assert live.turn_id not in ids(by_tokens)
    paged: list[str] = []
    while page := pump.client.turns(sort="tokens", limit=1, after=paged[-1] if paged else None):
        paged += ids(page)
    assert paged == ids(by_tokens)
    costs = [turn.cost_usd or 0 for turn in pump.client.turns(sort="cost")]
    assert costs == sorted(costs, reverse=True)


def test_a_turn_that_failed_is_failing(pump: Pump) -> None:
    failed = pump.submit("s1", "fail")
    pump.drain()
    broken = pump.submit("s2", "break")
    pump.submit("s3", "hello")
    pump.drain()
    assert ids(pump.client.turns(failing=True)) == [broken.turn_id, failed.turn_id]
    assert ids(pump.client.turns(failing=True, sort="oldest")) == [failed.turn_id, broken.turn_id]


def test_a_refused_submit_is_listed_with_why(pump: Pump) -> None:
    pump.wiring.store.turns.reject("turn-x", "key-x", "s1", "user_message: it is empty", "")
    (turn,) = pump.client.turns(state="rejected")
    assert (turn.state, turn.note, turn.ending) == ("rejected", "user_message: it is empty", None)


def test_sessions_tell_what_runs_and_what_waits(pump: Pump) -> None:
    client = pump.client
    done = pump.submit("acme:1", "hello")
    pump.finish(done)
    live, waits = pump.submit("acme:2", "hello"), pump.submit("acme:2", "and then")
    client.session("acme:1").pause()
    client.session("acme:1").readiness("not yet")
    second, first = client.sessions()
    assert (second.session_id, second.turns, second.live, second.waiting) == ("acme:2", 2, live.turn_id, 1)
    assert (second.last_turn.turn_id, second.last_turn.state) == (waits.turn_id, "queued")
    assert (first.session_id, first.turns, first.live, first.waiting) == ("acme:1", 1, None, 0)
    assert (first.is_paused, first.flags, first.last_turn.state) == (True, 1, "completed")
    assert (second.is_paused, second.flags) == (False, 0)
    assert [seen.session_id for seen in client.sessions("acme:1")] == ["acme:1"]
    assert [seen.session_id for seen in client.sessions(limit=1, after=waits.turn_id)] == ["acme:1"]
    assert client.sessions(session_prefixes=("other:",)) == ()


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ({"state": "odd"}, "state"),
        ({"state": "failed"}, "ending='failed'"),
        ({"ending": "queued"}, "ending"),
        ({"stop_reason": "tired"}, "stop_reason"),
        ({"min_cost_usd": float("nan")}, "min_cost_usd"),
        ({"min_cost_usd": -1.0}, "min_cost_usd"),
        ({"since": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001
        ({"until": datetime.min.replace(tzinfo=UTC).astimezone(UTC).replace(tzinfo=None)}, "until"),
        ({"text": "x" * 129}, "text"),
        ({"search": "x" * 201}, "search"),
        ({"sort": "best"}, "sort"),
        ({"limit": 0}, "limit"),
        ({"after": "no id"}, "after"),
        ({"metadata": "customer=42"}, "metadata"),
        ({"metadata": {str(n): n for n in range(21)}}, "at most 20"),
        ({"prompt_tags": "billing"}, "prompt_tags"),
        ({"after": "nobodys-turn"}, "turn 'nobodys-turn' does not exist"),
        ({"session": "no id"}, "session"),
        ({"session_prefixes": ("acme",)}, "session_prefixes"),
    ],
)
def test_what_no_list_can_be_asked_for_is_refused(pump: Pump, given: dict[str, Any], names: str) -> None:
    with pytest.raises(InvalidInput, match=names):
        pump.client.turns(**given)


def test_the_same_on_an_event_loop(pump: Pump) -> None:
    handle = pump.submit("s1", "hello")

    async def ask() -> tuple[list[str], list[str]]:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            turns, sessions = await client.turns(state="active"), await client.sessions()
            return ids(turns), [seen.session_id for seen in sessions]

    assert asyncio.run(ask()) == ([handle.turn_id], ["s1"])


def test_both_clients_take_the_same(pump: Pump) -> None:
    assert Client.turns.__doc__ == AsyncClient.turns.__doc__
