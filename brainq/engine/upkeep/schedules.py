"""Scheduled turns: turns that are due are submitted, and their schedules advance to the next run."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

from brainq.contracts.encryption import ContentKeyMissing
from brainq.contracts.ids import SCHEDULED_KEY_PREFIX, check_id, new_turn_id, tenant_of
from brainq.contracts.schedule import ScheduleRow
from brainq.contracts.turn import TurnRequest
from brainq.errors import BrainqError, InvalidInput, QueueFull, SubmitConflict, TenantMoved
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.sql.repositories.schedules import Schedules

log = logger("brainq.upkeep")
AT_ONCE = 500
MAX_RUN_S = 2.0  # for the due runs; the rest begins in the next sweep
MISSED_AFTER_MS = 60_000
FULL_MS = 60_000
MISSED = "missed: "  # how a note about missed runs begins
RECHECK_MS = 600_000  # until a schedule whose next run cannot be computed is tried again


def schedule_verdict(
    row: ScheduleRow, due_ms: int, now_ms: int, last_runs: bool, busy_since_ms: int | None = None
) -> Literal["run", "missed", "running"]:
    """Return whether a due run begins a turn. Pure.

    `missed` means that the run is skipped because it is too late, and `running` that it is skipped because the previous
    turn still runs.

    busy_since_ms: when all due runs had last been begun. A run that came due later was not missed; it only waited.
    """
    was_in_time = busy_since_ms is not None and due_ms > busy_since_ms
    if row.missed == "skip" and now_ms - due_ms > MISSED_AFTER_MS and not was_in_time:
        return "missed"
    return "running" if last_runs and row.on_running == "skip" else "run"


def resumed_run(row: ScheduleRow, next_ms: int | None, now_ms: int) -> tuple[int | None, str]:
    """Return the next run of a schedule that is resumed, and a note about the runs that the pause skipped. Pure.

    Runs of a repeated schedule that came due during the pause are skipped. A schedule with a single run makes up for
    it, unless it skips missed runs.

    next_ms: the first run after now by its timing, or None if there is none.
    """
    if row.next_ms is None or row.next_ms > now_ms:
        return row.next_ms, row.note
    if row.timing == "once" and row.missed == "once":
        return row.next_ms, row.note
    until = "" if next_ms is None else f" and before {_utc(next_ms)}"
    return next_ms, f"{MISSED}it was paused when runs from {_utc(row.next_ms)}{until} were due"


def tenants_in_turn(rows: Sequence[ScheduleRow]) -> list[ScheduleRow]:
    """Return the first row of each tenant, then the second of each, and so on. Pure.

    A tenant with many schedules therefore does not delay those of others.
    """
    had = Counter[str]()
    order: list[int] = []
    for row in rows:
        tenant = tenant_of(row.name)
        order.append(had[tenant])
        had[tenant] += 1
    return [row for _, row in sorted(zip(order, rows, strict=True), key=lambda placed: placed[0])]


def scheduled_request(row: ScheduleRow, due_ms: int) -> TurnRequest:
    """Return the turn of one due run. Its request key makes it one turn, however often it is submitted.

    Pure except for the new turn id. Raises InvalidInput if the session's name is not an id.
    """
    at = datetime.fromtimestamp(due_ms / 1000, ZoneInfo(row.zone))
    session_id = row.session_id.replace("{date}", f"{at:%Y-%m-%d}").replace("{time}", f"{at:%H%M}")
    own = {
        "turn_id": new_turn_id(),
        "session_id": _checked_session_id(session_id),
        "request_key": f"{SCHEDULED_KEY_PREFIX}{row.schedule_id}:{due_ms}",
    }
    return TurnRequest.model_validate({**row.request, **own}, extra="ignore")


def _utc(at_ms: int) -> str:
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _checked_session_id(session_id: str) -> str:
    if "{" in session_id:
        raise InvalidInput("session_id", f"{session_id!r}: the placeholders are {{date}} and {{time}}")
    return check_id("session_id", session_id)


@dataclass(eq=False, kw_only=True)
class ScheduleRunner:
    """The start of turns that are due. Any number may run: a due run becomes one turn, and advances its schedule once.

    submit: accepts a turn, and returns its id.
    runs: returns whether a turn has not ended yet.
    next_ms: returns the due time after another one, from the timing, the zone, the start and that time.
    now_ms: returns the time by Redis' clock.
    is_unavailable: returns whether a failure means that SQL or Redis is away.
    """

    rows: Schedules
    submit: Callable[[TurnRequest], str]
    runs: Callable[[str], bool]
    next_ms: Callable[[str, str, int, int], int | None]
    now_ms: Callable[[], int]
    is_unavailable: Callable[[Exception], bool]

    def __post_init__(self) -> None:
        self._done_ms: int | None = None  # when all due runs had been begun
        self._looked_ms: int | None = None
        self._waiting = set[str]()  # schedules that wait for a key, and were logged

    def run(self, longest_s: float = MAX_RUN_S) -> int:
        """Begin the turns that are due, and return how many were begun.

        Raises what SQL and Redis raise while they are away; the remaining runs stay due.
        """
        until, begun = time.monotonic() + longest_s, 0
        while True:
            now_ms = self.now_ms()
            due = self.rows.due(now_ms, AT_ONCE)
            if self._looked_ms is None or now_ms - self._looked_ms > MISSED_AFTER_MS:
                self._done_ms = None  # no runner has checked in the meantime
            self._looked_ms = now_ms
            is_due_again = False
            for row in tenants_in_turn(due):
                if row.next_ms is not None:
                    has_begun, follows_now = self._run_due(row, row.next_ms, now_ms)
                    begun += has_begun
                    is_due_again |= follows_now
                if time.monotonic() > until:
                    return begun
            if len(due) < AT_ONCE and not is_due_again:
                self._done_ms = now_ms
                return begun

    def _run_due(self, row: ScheduleRow, due_ms: int, now_ms: int) -> tuple[bool, bool]:
        """Return whether the due run began a turn, and whether the schedule's next run is due by now as well."""
        turn_id, note, following, is_full = "", "", now_ms + RECHECK_MS, False
        verdict: Literal["run", "missed", "running"] = "run"
        try:
            verdict = schedule_verdict(row, due_ms, now_ms, self._last_runs(row), self._done_ms)
            if verdict == "run":
                turn_id = self.submit(scheduled_request(row, due_ms))
                self._waiting.discard(row.name)
            elif verdict == "running":
                note = f"skipped: turn {row.last_turn_id} was still running"
        except TenantMoved:
            return False, False  # the schedule moved with its tenant, and is due in the new cell
        # Only this tenant's key is missing: the run stays due, and the other schedules continue.
        except ContentKeyMissing as missing:
            if row.name not in self._waiting:
                log.error("a scheduled turn waits for a key", schedule=row.name, why=str(missing))
            self._waiting.add(row.name)
            return False, False
        except SubmitConflict:  # the schedule was changed after its turn began, and before it was moved on
            note = f"the turn due at {_utc(due_ms)} began before the schedule was changed"
        except Exception as failure:
            note, is_full = self._refusal_note(row, failure), isinstance(failure, QueueFull)
        try:
            following, missed = self._next_instant(row, due_ms, now_ms, is_missed=verdict == "missed")
            note = note or missed
            if following is None and is_full:  # its only run waits until the queue has a free place
                following = now_ms + FULL_MS
        except Exception as failure:
            note = self._refusal_note(row, failure)
        moved = self.rows.move(row, following, turn_id=turn_id, note=note)
        return bool(turn_id), moved and following is not None and following <= now_ms

    def _next_instant(self, row: ScheduleRow, due_ms: int, now_ms: int, *, is_missed: bool) -> tuple[int | None, str]:
        """Return the next run that may begin a turn, and a note about the runs that were missed.

        A run that came due within the last minute is still in time. Of the older ones, only `due_ms` may have been made
        up for. The note about missed runs stays until there is a newer note.
        """
        after = partial(self.next_ms, row.timing, row.zone, row.start_ms)
        following = after(max(due_ms, now_ms - MISSED_AFTER_MS))
        first = due_ms if is_missed else after(due_ms)
        if first == following or first is None:
            return following, row.note if row.note.startswith(MISSED) else ""
        last = "" if following is None else f" and before {_utc(following)}"
        note = f"{MISSED}no worker could begin the runs due from {_utc(first)}{last} in time"
        log.warning("scheduled turns missed", schedule=row.name, why=note)
        return following, note

    def _last_runs(self, row: ScheduleRow) -> bool:
        return bool(row.last_turn_id) and self.runs(row.last_turn_id)

    def _refusal_note(self, row: ScheduleRow, failure: Exception) -> str:
        """Return the note for a run that was refused. Raises the failure if SQL or Redis is away.

        A run is refused if its brain is gone, its session is busy, too many turns wait, or this version cannot read it.
        Other schedules must not wait for it.
        """
        if self.is_unavailable(failure):
            raise failure
        log.warning("scheduled turn refused", schedule=row.name, why=type(failure).__name__)
        if isinstance(failure, BrainqError):
            return f"refused: {failure}"
        return f"refused: this version of brainq cannot read the schedule ({type(failure).__name__}); set it again"
