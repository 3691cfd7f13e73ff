"""Schedules from a client's verb to the turns they begin."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import update

from brainq import AsyncClient, Brain, ScriptedProvider
from brainq.adapters.sql.tables import schedules
from brainq.app.wiring.sweeper import make_schedule_runner
from brainq.contracts.schedule import Missed, Schedule
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import says
from brainq.engine.people.admission import read_foreign
from brainq.errors import InvalidInput, ScheduleNotFound, SchedulesFull
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
PAGE = Path(__file__).parents[3] / "docs/guides/scheduling.md"


@pytest.fixture
def pump(pumps: Pumps) -> Pump:
    return pumps(Brain("shop", ScriptedProvider(rules=lambda _: says("done"))))


def begin_due(pump: Pump) -> int:
    return make_schedule_runner(pump.wiring).run()


def set_due(pump: Pump, name: str, *, ago_s: float) -> datetime:
    """Let the next instant of a schedule, and the first one, be in the past."""
    due = datetime.fromtimestamp(round(datetime.now(UTC).timestamp()) - ago_s, UTC)
    due_ms = round(due.timestamp() * 1000)
    values = update(schedules).where(schedules.c.name == name).values(start_ms=due_ms, next_ms=due_ms)
    with pump.wiring.store.engine.begin() as connection:
        assert connection.execute(values).rowcount == 1
    return due


def test_a_turn_begins_once_at_its_time(pump: Pump) -> None:
    made = pump.client.schedule("once", "s-{date}", "hi", in_s=0, metadata={"a": 1})
    assert begin_due(pump) == 1
    assert begin_due(pump) == 0
    pump.drain()
    after = pump.client.find_schedule("once")
    assert (after.next_at, after.last_due_at, after.note) == (None, made.next_at, "")
    turn = pump.client.handle(after.last_turn_id)
    assert turn.result(timeout_s=10).ending is Ending.COMPLETED
    assert turn.session_id == f"s-{made.next_at:%Y-%m-%d}"
    assert turn.request().metadata == {"a": 1}


def test_a_repeated_one_goes_on_and_two_sweepers_begin_one_turn(pumps: Pumps) -> None:
    model = ScriptedProvider(rules=lambda _: says("done"))
    one, other = pumps(Brain("shop", model), owner="a"), pumps(Brain("shop", model), owner="b")
    made = one.client.schedule("poll", "s1", "hi", when=timedelta(hours=1))
    assert made.next_at is not None
    assert begin_due(one) == 0
    due_ms = round(made.next_at.timestamp() * 1000) - 3_600_000
    row = one.wiring.store.schedules.get("poll")
    assert row is not None
    assert one.wiring.store.schedules.move(row, due_ms)
    seen = one.wiring.store.schedules.due(due_ms, 1)
    runners = [make_schedule_runner(pump.wiring) for pump in (one, other)]
    for runner in runners:
        runner.rows.due = lambda now_ms, most: seen  # type: ignore[method-assign]
        runner.run()
    assert len(one.client.turns("s1")) == 1
    after = one.client.find_schedule("poll")
    assert after.next_at is not None
    assert after.next_at > datetime.now(UTC)


def test_the_same_name_sets_it_anew_and_the_same_again_changes_nothing(pump: Pump) -> None:
    first = pump.client.schedule("poll", "s1", "hi", when=3600)
    assert pump.client.schedule("poll", "s1", "hi", when=3600) == first
    changed = pump.client.schedule("poll", "s1", "ho", when="0 7 * * *", zone="Europe/Berlin")
    assert (changed.when, changed.user_message, changed.zone) == ("0 7 * * *", "ho", "Europe/Berlin")
    assert len(pump.client.schedules()) == 1


@pytest.mark.parametrize(("missed", "turns"), [("once", 1), ("skip", 0)])
def test_the_only_run_that_a_pause_kept_from_its_time_is_made_up_for_or_named(
    pump: Pump, missed: Missed, turns: int
) -> None:
    pump.client.schedule("poll", "s1", "hi", in_s=3600, missed=missed)
    assert pump.client.pause_schedule("poll").paused
    set_due(pump, "poll", ago_s=3600)  # its time came an hour ago, during the pause
    assert begin_due(pump) == 0
    resumed = pump.client.resume_schedule("poll")
    assert not resumed.paused
    assert begin_due(pump) == turns
    assert ("it was paused when runs from" in resumed.note) is (missed == "skip")
    assert pump.client.find_schedule("poll").next_at is None


def test_runs_of_a_repeated_one_that_were_due_in_a_pause_are_left_out_and_named(pump: Pump) -> None:
    pump.client.schedule("poll", "s1", "hi", when=3600)
    pump.client.pause_schedule("poll")
    set_due(pump, "poll", ago_s=5000)
    resumed = pump.client.resume_schedule("poll")
    assert begin_due(pump) == 0
    assert resumed.next_at is not None
    assert resumed.next_at > datetime.now(UTC)
    assert resumed.note.startswith("missed: it was paused when runs from")


def test_setting_a_schedule_again_across_its_due_instants_begins_each_once(pump: Pump) -> None:
    for run in range(30):
        pump.client.schedule("poll", "s1", f"message {run}", when=3600, on_running="queue")
        set_due(pump, "poll", ago_s=50 - run)
        changed = pump.client.schedule("poll", "s1", f"message {run}, changed", when=3600, on_running="queue")
        assert changed.next_at is not None
        assert changed.next_at < datetime.now(UTC)
        assert begin_due(pump) == 1
        pump.client.schedule("poll", "s1", f"message {run}, again", when=3600, on_running="queue")
        assert begin_due(pump) == 0
    sent = [pump.client.handle(turn.turn_id).request().user_message for turn in pump.client.turns("s1", limit=100)]
    assert sorted(sent) == sorted(f"message {run}, changed" for run in range(30))


def test_a_due_instant_begins_its_turn_also_when_the_timing_is_changed(pump: Pump) -> None:
    pump.client.schedule("poll", "s1", "hi", when=3600)
    due = set_due(pump, "poll", ago_s=30)
    changed = pump.client.schedule("poll", "s1", "ho", when=timedelta(hours=2))
    assert changed.next_at == due
    assert begin_due(pump) == 1
    assert begin_due(pump) == 0
    following = pump.client.find_schedule("poll").next_at
    assert following is not None
    assert following > datetime.now(UTC) + timedelta(minutes=90)


def test_a_removed_one_is_gone_and_its_turns_stay(pump: Pump) -> None:
    pump.client.schedule("once", "s1", "hi", in_s=0)
    begin_due(pump)
    assert pump.client.remove_schedule("once")
    assert not pump.client.remove_schedule("once")
    with pytest.raises(ScheduleNotFound, match="no schedule 'once'"):
        pump.client.pause_schedule("once")
    assert len(pump.client.turns("s1")) == 1


def test_a_list_is_of_one_tenants_names(pump: Pump) -> None:
    for name in ("acme:a", "acme:b", "acmeish:c"):
        pump.client.schedule(name, "s1", "hi", when=3600)
    assert [one.name for one in pump.client.schedules(name_prefixes=["acme:"])] == ["acme:a", "acme:b"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "when"),
        ({"when": 3600, "in_s": 5}, "when"),
        ({"at": datetime(2031, 1, 1)}, "at"),  # noqa: DTZ001 - that is what is refused
        ({"at": "2031-01-01T00:00:00Z"}, "at"),
        ({"at": datetime(9999, 12, 31, 23, 59, tzinfo=ZoneInfo("Asia/Tokyo"))}, "at"),
        ({"at": datetime(1, 1, 1, tzinfo=ZoneInfo("America/New_York"))}, "at"),
        ({"in_s": -1}, "in_s"),
        ({"in_s": "5"}, "in_s"),
        ({"in_s": True}, "in_s"),
        ({"in_s": float("nan")}, "in_s"),
        ({"when": 3600, "zone": None}, "zone"),
        ({"when": 3600, "on_busy": "reject"}, "on_busy"),
        ({"when": 3600, "zone": "Nowhere"}, "zone"),
        ({"when": 3600, "on_running": "wait"}, "on_running"),
        ({"when": 3600, "missed": "all"}, "missed"),
        ({"when": 3600, "request_key": "k"}, "request_key"),
        ({"when": 3600, "model": "nobody:x"}, "model"),
        ({"when": 3600, "brain": "none"}, "brain"),
        ({"when": 3600, "limits": {"max_steps": 0}}, "limits"),
    ],
)
def test_what_is_wrong_is_refused_when_it_is_made(pump: Pump, given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        pump.client.schedule("x", "s1", "hi", **given)
    with pytest.raises(InvalidInput, match="session_id"):
        pump.client.schedule("x", "a b {date}", "hi", when=3600)
    assert pump.client.schedules() == ()


def test_the_asynchronous_client_has_the_same_verbs(pump: Pump) -> None:
    async def all_of_it() -> list[Schedule]:
        async with AsyncClient(pump.settings, Brain("shop", ScriptedProvider([says("x")]))) as client:
            seen = [await client.schedule("poll", "s1", "hi", when=3600), await client.find_schedule("poll")]
            seen += [await client.pause_schedule("poll"), await client.resume_schedule("poll")]
            seen += await client.schedules()
            assert await client.remove_schedule("poll")
        return seen

    assert [one.name for one in asyncio.run(all_of_it())] == ["poll"] * 5


def test_the_code_on_the_page_runs(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, beats = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    monkeypatch.setattr("brainq.Client", lambda: pump.client)
    exec(compile(ours, str(PAGE), "exec"), {})
    assert [one.name for one in pump.client.schedules()] == ["acme:office", "acme:party", "acme:poll", "acme:report"]
    found: dict[str, Any] = {}
    exec(compile(beats, str(PAGE), "exec"), found)
    entry = found["app"].conf.beat_schedule["report"]
    assert entry["task"] == "brainq.turn.submit"
    request, _ = read_foreign((), entry["kwargs"])
    assert request.session_id == "acme:report"


def test_a_tenant_has_as_many_as_the_deployment_allows(pumps: Pumps) -> None:
    client = pumps(Brain("shop", ScriptedProvider([says("done")])), max_schedules_a_tenant=2).client
    for name in ("acme:1", "acme:2", "b:1", "plain"):
        client.schedule(name, "s", "hi", when="0 7 * * *")
    client.schedule("acme:2", "s", "something else", when="0 8 * * *")
    with pytest.raises(SchedulesFull, match=r"tenant 'acme' has 2 .*BRAINQ_MAX_SCHEDULES_A_TENANT=2.*remove some"):
        client.schedule("acme:3", "s", "hi", when="0 7 * * *")
    assert client.remove_schedule("acme:1")
    assert client.schedule("acme:3", "s", "hi", when="0 7 * * *").name == "acme:3"
