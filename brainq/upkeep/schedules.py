"""Scheduled turns: what is due is submitted, and the schedule moves on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal
from zoneinfo import ZoneInfo

from brainq.contracts.ids import SCHEDULED, check_id, new_turn_id
from brainq.contracts.schedule import ScheduleRow
from brainq.contracts.turn import TurnRequest
from brainq.errors import BrainqError
from brainq.observe.logs import logger
from brainq.ports.schedule_rows import ScheduleRows

log = logger("brainq.upkeep")

AT_ONCE = 100
MISSED_AFTER_MS = 60_000


def judge(row: ScheduleRow, due_ms: int, now_ms: int, last_runs: bool) -> Literal["run", "missed", "running"]:
    """Whether a due instant begins a turn. Pure."""
    if row.missed == "skip" and now_ms - due_ms > MISSED_AFTER_MS:
        return "missed"
    return "running" if last_runs and row.on_running == "skip" else "run"


def request_of(row: ScheduleRow, due_ms: int) -> TurnRequest:
    """The turn of one due instant: by its request key it is one turn, however often it is submitted. Pure but for the
    id of a turn that is not yet there. Raises InvalidInput where its session's name is none."""
    at = datetime.fromtimestamp(due_ms / 1000, ZoneInfo(row.zone))
    session_id = row.session_id.replace("{date}", f"{at:%Y-%m-%d}").replace("{time}", f"{at:%H%M}")
    return TurnRequest.model_validate(
        {
            **row.request,
            "turn_id": new_turn_id(),
            "session_id": check_id("session_id", session_id),
            "request_key": f"{SCHEDULED}{row.schedule_id}:{due_ms}",
        }
    )


@dataclass(eq=False, kw_only=True)
class ScheduleRunner:
    """Begins the turns that are due. Any number may run: a due instant is one turn, and moves its schedule once.

    submit     accepts a turn: its id
    runs       whether a turn has not ended yet
    next_ms    the due instant after another one: (timing, zone, start, after)
    now_ms     by Redis' clock
    """

    rows: ScheduleRows
    submit: Callable[[TurnRequest], str]
    runs: Callable[[str], bool]
    next_ms: Callable[[str, str, int, int], int | None]
    now_ms: Callable[[], int]

    def run(self) -> int:
        """How many turns were begun. Raises what SQL and Redis raise while they are away; the rest is due again."""
        now_ms = self.now_ms()
        return sum(
            self._one(row, row.next_ms, now_ms) for row in self.rows.due(now_ms, AT_ONCE) if row.next_ms
        )

    def _one(self, row: ScheduleRow, due_ms: int, now_ms: int) -> bool:
        turn_id, note = "", ""
        match judge(row, due_ms, now_ms, bool(row.last_turn_id) and self.runs(row.last_turn_id)):
            case "run":
                try:
                    turn_id = self.submit(request_of(row, due_ms))
                except BrainqError as refused:  # its brain is gone, or its session is busy
                    note = f"refused: {refused}"
                    log.warning("scheduled turn refused", schedule=row.name, why=type(refused).__name__)
            case "missed":
                note = "missed: nobody could begin it in its time"
            case "running":
                note = f"left out: turn {row.last_turn_id} still ran"
        # From now on: of several missed instants the first is made up for.
        following = self.next_ms(row.timing, row.zone, row.start_ms, max(due_ms, now_ms))
        self.rows.move(row.schedule_id, due_ms, following, turn_id=turn_id, note=note)
        return bool(turn_id)
