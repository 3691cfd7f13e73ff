"""What becomes of due instants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from unittest.mock import Mock

import pytest

from brainq.contracts.schedule import ScheduleRow
from brainq.contracts.turn import TurnRequest
from brainq.engine.upkeep import schedules
from brainq.engine.upkeep.schedules import ScheduleRunner, schedule_verdict, scheduled_request, tenants_in_turn
from brainq.errors import InvalidInput, QueueFull, SessionBusy
from tests.support.stand_in import stand_in

HOUR_MS = 3_600_000
DUE_MS = 1_925_708_400_000  # 2031-01-09 07:00 UTC


def row(**changes: Any) -> ScheduleRow:
    fields: dict[str, Any] = {
        "schedule_id": "id1",
        "name": "acme:report",
        "timing": "every 3600",
        "zone": "Europe/Berlin",
        "session_id": "acme:report-{date}",
        "request": {"user_message": "report"},
        "on_running": "skip",
        "missed": "once",
        "paused": False,
        "start_ms": DUE_MS,
        "next_ms": DUE_MS,
    }
    return ScheduleRow(**(fields | changes))


@dataclass
class World:
    """SQL's row, and the turns by their request key.

    dies      the runner is killed between submit and move
    refuses   the session is busy
    away      so many submits find SQL away
    """

    row: ScheduleRow
    now_ms: int = DUE_MS + 2_000
    turns: dict[str, TurnRequest] = field(default_factory=dict[str, TurnRequest])
    running: set[str] = field(default_factory=set[str])
    dies: bool = False
    refuses: bool = False
    away: int = 0

    def due(self, now_ms: int, most: int) -> list[ScheduleRow]:
        return [self.row] if self.row.next_ms is not None and self.row.next_ms <= now_ms else []

    def move(self, row: ScheduleRow, next_ms: int | None, *, turn_id: str = "", note: str = "") -> bool:
        if self.dies:
            raise KeyboardInterrupt
        if self.row.next_ms != row.next_ms:
            return False
        changes = {"next_ms": next_ms, "last_due_ms": row.next_ms, "note": note}
        self.row = self.row.model_copy(update=changes | ({"last_turn_id": turn_id} if turn_id else {}))
        return True

    def submit(self, request: TurnRequest) -> str:
        if self.away:
            self.away -= 1
            raise ConnectionError
        if self.refuses:
            raise SessionBusy(request.session_id, "t1")
        return self.turns.setdefault(request.key, request).turn_id

    def runner(self) -> ScheduleRunner:
        return ScheduleRunner(
            rows=stand_in(self),
            submit=self.submit,
            runs=lambda turn_id: turn_id in self.running,
            next_ms=lambda timing, zone, start, after: start + ((after - start) // HOUR_MS + 1) * HOUR_MS,
            now_ms=lambda: self.now_ms,
            is_unavailable=lambda failure: isinstance(failure, ConnectionError),
        )


def test_a_due_instant_is_one_turn_and_moves_its_schedule() -> None:
    world = World(row())
    assert world.runner().run() == 1
    assert world.runner().run() == 0
    (request,) = world.turns.values()
    assert (request.session_id, request.key) == ("acme:report-2031-01-09", f"schedule:id1:{DUE_MS}")
    assert (world.row.next_ms, world.row.last_due_ms) == (DUE_MS + HOUR_MS, DUE_MS)
    assert world.row.last_turn_id == request.turn_id


def test_a_runner_killed_between_submit_and_move_leaves_one_turn() -> None:
    world = World(row(), dies=True)
    with pytest.raises(KeyboardInterrupt):
        world.runner().run()
    assert len(world.turns) == 1
    world.dies = False
    world.now_ms += 10 * HOUR_MS + 90_000  # nobody came for long
    world.runner().run()
    assert list(world.turns) == [f"schedule:id1:{DUE_MS}"]
    assert world.row.next_ms == DUE_MS + 11 * HOUR_MS


def test_two_runners_at_once_begin_one_turn() -> None:
    world = World(row())
    both = [world.runner(), world.runner()]
    seen = world.due(world.now_ms, 1)
    world.due = lambda now_ms, most: seen  # both have read it before either moved it
    assert [runner.run() for runner in both] == [1, 1]
    assert len(world.turns) == 1
    assert world.row.next_ms == DUE_MS + HOUR_MS


def test_of_missed_instants_the_first_is_made_up_for_or_none_and_the_others_are_named() -> None:
    late = World(row(), now_ms=DUE_MS + 5 * HOUR_MS + 90_000)
    assert late.runner().run() == 1
    assert list(late.turns) == [f"schedule:id1:{DUE_MS}"]
    assert late.row.next_ms == DUE_MS + 6 * HOUR_MS
    until = "and before 2031-01-09 13:00:00 UTC in time"
    said = f"missed: no worker could begin the runs due from 2031-01-09 {{}} UTC {until}"
    assert late.row.note == said.format("08:00:00")
    none = World(row(missed="skip"), now_ms=DUE_MS + 5 * HOUR_MS + 90_000)
    assert none.runner().run() == 0
    assert (none.turns, none.row.note) == ({}, said.format("07:00:00"))


def test_what_was_missed_stays_said_until_there_is_something_newer_to_say() -> None:
    world = World(row(), now_ms=DUE_MS + 5 * HOUR_MS + 90_000)
    runner = world.runner()
    runner.run()
    said = world.row.note
    world.now_ms = DUE_MS + 6 * HOUR_MS + 2_000
    assert runner.run() == 1
    assert (world.row.note, said[:7]) == (said, "missed:")
    world.running.add(world.row.last_turn_id)
    world.now_ms += HOUR_MS
    assert runner.run() == 0
    assert world.row.note.startswith("skipped")
    world.running.clear()
    world.now_ms += HOUR_MS
    assert runner.run() == 1
    assert world.row.note == ""


def test_each_instant_of_the_last_minute_begins_its_turn_though_nobody_looked_meanwhile() -> None:
    """A coordinator died at the tick, and another looks a little later."""
    every_ms = 10_000
    for missed in ("once", "skip"):
        world = World(row(timing="every 10", missed=missed, on_running="queue"), now_ms=DUE_MS + 35_000)
        runner = world.runner()
        runner.next_ms = lambda timing, zone, start, after: start + ((after - start) // every_ms + 1) * every_ms
        assert runner.run() == 4
        assert list(world.turns) == [f"schedule:id1:{DUE_MS + n * every_ms}" for n in range(4)]
        assert (world.row.next_ms, world.row.note) == (DUE_MS + 4 * every_ms, "")


def test_one_whose_last_turn_still_runs_is_left_out_or_queued() -> None:
    world = World(row(last_turn_id="t0"), running={"t0"})
    assert world.runner().run() == 0
    assert (world.row.note, world.row.last_turn_id) == ("skipped: turn t0 was still running", "t0")
    assert schedule_verdict(row(on_running="queue"), DUE_MS, DUE_MS, last_runs=True) == "run"


def test_a_refused_run_says_why_and_the_schedule_goes_on() -> None:
    world = World(row(), refuses=True)
    assert world.runner().run() == 0
    assert world.row.note.startswith("refused: ")
    assert world.row.next_ms == DUE_MS + HOUR_MS


def test_a_run_is_left_out_where_too_many_turns_wait_and_an_only_one_is_put_off() -> None:
    full = QueueFull("5 turns wait", "BRAINQ_MAX_WAITING_TURNS_A_SESSION", 5)
    for next_ms, following in ((None, DUE_MS + 62_000), (DUE_MS + HOUR_MS, DUE_MS + HOUR_MS)):
        world = World(row())
        runner = world.runner()
        runner.submit = Mock(side_effect=full)
        runner.next_ms = Mock(return_value=next_ms)
        assert runner.run() == 0
        assert world.row.note.startswith("refused: 5 turns wait")
        assert world.row.next_ms == following


def test_the_session_of_a_run_is_of_its_instant_in_its_zone() -> None:
    assert scheduled_request(row(session_id="s-{date}-{time}"), DUE_MS).session_id == "s-2031-01-09-0800"
    with pytest.raises(InvalidInput, match="session_id"):
        scheduled_request(row(session_id="a b {date}"), DUE_MS)
    with pytest.raises(InvalidInput, match=r"the placeholders are \{date\} and \{time\}"):
        scheduled_request(row(session_id="s-{day}"), DUE_MS)


@pytest.mark.parametrize("broken", [{"request": {"a_field_of_a_later_brainq": 1}}, {"zone": "Moon/Base"}])
def test_one_that_cannot_be_read_says_so_and_goes_on(broken: dict[str, Any]) -> None:
    world = World(row(**broken))
    assert world.runner().run() == 0
    assert world.row.note.startswith("refused: this version of brainq cannot read the schedule")
    assert world.row.next_ms == DUE_MS + HOUR_MS


def test_one_whose_next_instant_cannot_be_told_is_asked_again_later() -> None:
    world = World(row())
    runner = world.runner()
    runner.next_ms = Mock(side_effect=IndexError)
    assert runner.run() == 1
    assert world.row.note.startswith("refused: this version of brainq cannot read the schedule (IndexError)")
    assert world.row.next_ms is not None
    assert world.row.next_ms > world.now_ms


def test_while_sql_is_away_a_schedule_stays_due() -> None:
    world = World(row(), away=1)
    runner = world.runner()
    with pytest.raises(ConnectionError):
        runner.run()
    assert (world.row.next_ms, world.row.note) == (DUE_MS, "")
    assert runner.run() == 1


def test_what_came_due_while_others_were_begun_is_not_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "AT_ONCE", 1)
    world = World(row(missed="skip", next_ms=DUE_MS - HOUR_MS), now_ms=DUE_MS - HOUR_MS)
    runner = world.runner()
    for world.now_ms in range(DUE_MS - HOUR_MS, DUE_MS, 50_000):
        runner.run()
    assert world.row.next_ms == DUE_MS

    def others(now_ms: int, most: int) -> list[ScheduleRow]:
        return [row(schedule_id="id2", next_ms=1)]

    due, world.due = world.due, others
    for world.now_ms in range(DUE_MS, DUE_MS + 300_000, 50_000):
        runner.run(longest_s=0)
    world.due = due
    assert runner.run() == 1
    world.now_ms += HOUR_MS
    assert world.runner().run() == 0, "one that just began to look has seen nothing come"
    world.now_ms += HOUR_MS
    assert runner.run() == 0, "nobody looked for an hour"


def test_a_tenant_with_many_that_are_due_keeps_nobody_waiting() -> None:
    due = [row(name=name) for name in ("acme:1", "acme:2", "acme:3", "zoo:1", "plain", "zoo:2")]
    names = [one.name for one in tenants_in_turn(due)]
    assert names == ["acme:1", "zoo:1", "plain", "acme:2", "zoo:2", "acme:3"]


def test_a_run_goes_on_until_nothing_is_due_or_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedules, "AT_ONCE", 2)
    world = World(row())
    waiting = [row(schedule_id=f"id{number}") for number in range(5)]
    world.due = lambda now_ms, most: waiting[:most]

    def move(*_: object, **__: object) -> bool:
        return bool(waiting.pop(0))

    world.move = move
    assert world.runner().run(longest_s=0) == 1
    assert world.runner().run() == 4
    assert len(world.turns) == 5
