"""The client's verbs for schedules, and the checks of a new schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from heapq import merge
from itertools import islice
from typing import Any, Unpack, cast

from brainq.app.wiring import Wiring
from brainq.client import checks
from brainq.client.connection import Connection
from brainq.client.options import SubmitOptions, submit_fields, takes_submit_options
from brainq.contracts.act import NewAct
from brainq.contracts.answers import listed
from brainq.contracts.ids import ALL_SESSIONS, PREFIX_BOUNDARY, check_id, check_prefixes, new_turn_id, tenant_of
from brainq.contracts.schedule import Missed, OnRunning, Schedule, ScheduleRow
from brainq.engine.people.admission import read_request
from brainq.engine.upkeep.schedules import resumed_run, scheduled_request
from brainq.errors import InvalidInput, ScheduleNotFound, SchedulesFull

NOT_SCHEDULED = ("turn_id", "request_key", "readiness", "attachments")
"""The options of a submit that belong to a single turn, so a schedule cannot have them."""
MAX_AHEAD_S = 3660 * 86_400
LIMIT_SETTING = "BRAINQ_MAX_SCHEDULES_A_TENANT"


class ScheduleVerbs:
    """The part of `Client` that creates, lists, pauses and removes schedules."""

    _connection: Connection

    @takes_submit_options
    def schedule(
        self,
        name: str,
        session_id: str,
        user_message: str,
        *,
        when: object = None,
        at: datetime | None = None,
        in_s: float | None = None,
        zone: str = "UTC",
        on_running: OnRunning = "skip",
        missed: Missed = "once",
        **options: Unpack[SubmitOptions],
    ) -> Schedule:
        """Submit a turn at a time, once or repeatedly. A schedule with the same name is replaced.

        name: such as `acme:daily-report`. Like a session's id it begins with its tenant's prefix.
        session_id: {date} and {time} in it become those of the due instant in `zone`: `acme:report-{date}`.
        when: repeatedly, in the forms of Celery's beat: `crontab(...)`, `schedule(...)`, a timedelta, seconds; or the
            text of a crontab, `*/5 9-17 * * mon-fri`.
        at, in_s: once, at this time with a time zone, or in this many seconds.
        zone: the IANA time zone of a crontab.
        on_running: what to do if the turn of the last run has not ended: `skip` this run, or `queue` it.
        missed: what to do about runs that could not begin when they were due: run `once` for all of them, or `skip`.
        options: as for `submit`, except for those that belong to one turn.

        A due instant becomes one turn, whichever process dies, because its request key is made of schedule and instant.
        Raises InvalidInput naming the field, and SchedulesFull if its tenant has the largest number of schedules.
        """
        fields = submit_fields(ScheduleVerbs.schedule, options)
        check_id("name", name)
        _check_policies(on_running, missed, fields)
        request = read_request({**fields, "session_id": "x", "turn_id": new_turn_id(), "user_message": user_message})
        stored = request.model_dump(
            mode="json", exclude_defaults=True, exclude={"turn_id", "session_id", "request_key"}
        )

        def put(wiring: Wiring) -> Schedule:
            wiring.tenants.require_here(session_id)
            now_ms = wiring.state.events.now_ms()
            timing, start_ms = _first_run(now_ms, when, at, in_s, zone)
            row = ScheduleRow(
                schedule_id=new_turn_id(),
                name=name,
                timing=timing,
                zone=zone,
                session_id=session_id,
                request=stored,
                on_running=on_running,
                missed=missed,
                paused=False,
                start_ms=start_ms,
                next_ms=start_ms,
            )
            # Reject here what no brain could do.
            wiring.people.intake.check_request(scheduled_request(row, start_ms))
            return _put_schedule(wiring, row, now_ms)

        return self._connection.do(
            put,
            NewAct("schedule", name, session_id=session_id),
            find=lambda cells: cells.settle_schedule(name, str(session_id)),
        )

    def schedules(
        self,
        limit: int = 1000,
        name_prefixes: Sequence[str] | None = None,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str = "",
    ) -> tuple[Schedule, ...]:
        """List schedules by name.

        name_prefixes      schedules whose name begins with one of these prefixes, such as ("acme:",)
        session_prefixes   schedules whose session begins with one of these prefixes
        after      the last name of the previous page
        """
        by_name = (ALL_SESSIONS,) if name_prefixes is None else check_prefixes("name_prefixes", name_prefixes)
        by_session = checks.session_prefixes(session_prefixes) or (ALL_SESSIONS,)
        most = checks.limit(limit)
        asked = self._connection.ask(
            lambda wiring: wiring.store.schedules.list(by_name, most, by_session, after), prefixes=session_prefixes
        )
        rows = islice(merge(*asked.values, key=lambda row: row.name), most)
        return listed((_public_schedule(row) for row in rows), asked)

    def find_schedule(self, name: str) -> Schedule:
        """Return a schedule by its name. Raises ScheduleNotFound."""
        check_id("name", name)
        return self._connection.read(lambda wiring: _public_schedule(_get_schedule(wiring, name)), session=name)

    def pause_schedule(self, name: str) -> Schedule:
        """Pause a schedule: no run begins until it is resumed. Raises ScheduleNotFound."""
        return self._change("pause schedule", name, _pause)

    def resume_schedule(self, name: str) -> Schedule:
        """Resume a paused schedule with its next due instant. Raises ScheduleNotFound.

        Instants that came due during the pause are skipped, and `note` names them. An instant that was already due when
        the schedule was paused, and the only run of a schedule that runs once, begin now, according to `missed`.
        """
        return self._change("resume schedule", name, _resume)

    def remove_schedule(self, name: str) -> bool:
        """Remove a schedule. Turns that it has begun continue. Returns False if there is no such schedule."""
        check_id("name", name)

        def remove(wiring: Wiring) -> bool:
            _get_schedule(wiring, name)
            return wiring.store.schedules.remove(name)

        try:
            return self._connection.do(remove, NewAct("remove schedule", name), session=name)
        except ScheduleNotFound:
            return False

    def _change(self, act: str, name: str, change: Callable[[Wiring, ScheduleRow], None]) -> Schedule:
        def apply(wiring: Wiring) -> Schedule:
            change(wiring, _get_schedule(wiring, name))
            return _public_schedule(_get_schedule(wiring, name))

        check_id("name", name)
        schedule = self._connection.read(apply, session=name)
        self._connection.record(NewAct(act, name, session_id=schedule.session_id))
        return schedule


def _pause(wiring: Wiring, row: ScheduleRow) -> None:
    wiring.store.schedules.pause(row.name, wiring.state.events.now_ms())


def _resume(wiring: Wiring, row: ScheduleRow) -> None:
    from brainq.adapters.celery.schedule_times import next_ms

    now_ms = wiring.state.events.now_ms()
    following, note = resumed_run(row, next_ms(row.timing, row.zone, row.start_ms, now_ms), now_ms)
    wiring.store.schedules.resume(row.name, following, note)


def _check_policies(on_running: str, missed: str, options: Mapping[str, Any]) -> None:
    if on_running not in ("skip", "queue"):
        raise InvalidInput("on_running", f"{on_running!r} is not supported; use skip or queue")
    if missed not in ("once", "skip"):
        raise InvalidInput("missed", f"{missed!r} is not supported; use once or skip")
    for field in NOT_SCHEDULED:
        if options.get(field) is not None:
            raise InvalidInput(field, "the option belongs to a single turn; omit it in a schedule")
    if options.get("on_busy") is not None:
        raise InvalidInput("on_busy", "a schedule has on_running instead: use skip or queue")


def _first_run(now_ms: int, when: object, at: datetime | None, in_s: float | None, zone: str) -> tuple[str, int]:
    """Return the timing as it is stored, and the first due instant. Raises InvalidInput naming the field."""
    from brainq.adapters.celery.schedule_times import (  # Celery takes a third of a second
        next_ms,
        read_timing,
        read_zone,
    )

    read_zone(zone)
    if sum(choice is not None for choice in (when, at, in_s)) != 1:
        raise InvalidInput("when", "pass exactly one of `when`, `at` and `in_s`")
    if when is not None:
        timing = read_timing(when)
        first_ms = next_ms(timing, zone, now_ms, now_ms)
        if first_ms is None:
            raise InvalidInput("when", f"{timing.partition(' ')[2]!r} is never due")
        return timing, first_ms
    if at is not None:
        return "once", _instant_ms(at, now_ms)
    is_number = isinstance(cast("object", in_s), int | float) and not isinstance(in_s, bool)
    if in_s is None or not is_number or not 0 <= in_s <= MAX_AHEAD_S:
        raise InvalidInput("in_s", f"{in_s!r} must be a number of seconds from 0 to ten years")
    return "once", now_ms + round(in_s * 1000)


def _instant_ms(at: object, now_ms: int) -> int:
    if not isinstance(at, datetime):
        raise InvalidInput("at", f"it must be a datetime with a time zone, got {type(at).__name__}")
    if at.tzinfo is None:
        raise InvalidInput("at", "it needs a time zone: datetime(..., tzinfo=ZoneInfo('Europe/Berlin'))")
    try:
        at_ms = round(at.timestamp() * 1000)
    except (OverflowError, ValueError):
        at_ms = -1
    if not 0 <= at_ms <= now_ms + MAX_AHEAD_S * 1000:
        raise InvalidInput("at", "the time must be between 1970 and ten years from now")
    return at_ms


def _put_schedule(wiring: Wiring, row: ScheduleRow, now_ms: int) -> Schedule:
    """Store a schedule. One that equals the schedule of its name changes nothing. Raises SchedulesFull."""
    rows = wiring.store.schedules
    known = rows.get(row.name)
    compared = {"timing", "zone", "session_id", "request", "on_running", "missed"}
    same = known is not None and known.model_dump(include=compared) == row.model_dump(include=compared)
    if known is None or not same or (row.timing == "once" and known.start_ms != row.start_ms):
        limit = wiring.settings.max_schedules_a_tenant
        if not rows.put(row, now_ms, limit):
            raise SchedulesFull(tenant_of(row.name).removesuffix(PREFIX_BOUNDARY), LIMIT_SETTING, limit)
    return _public_schedule(_get_schedule(wiring, row.name))


def _get_schedule(wiring: Wiring, name: str) -> ScheduleRow:
    """Return a schedule's row. Raises ScheduleNotFound."""
    row = wiring.store.schedules.get(check_id("name", name))
    if row is None:
        raise ScheduleNotFound(f"no schedule {name!r}; `brainq schedule list` shows all")
    return row


def _public_schedule(row: ScheduleRow) -> Schedule:
    kind, _, rest = row.timing.partition(" ")
    start = _instant(row.start_ms)
    when = {"once": f"at {start:%Y-%m-%d %H:%M:%S} UTC", "every": f"every {rest} s"}.get(kind, rest)
    return Schedule(
        name=row.name,
        when=when,
        zone=row.zone,
        session_id=row.session_id,
        user_message=str(row.request.get("user_message", "")),
        on_running=row.on_running,
        missed=row.missed,
        paused=row.paused,
        next_at=_instant(row.next_ms),
        last_due_at=_instant(row.last_due_ms),
        last_turn_id=row.last_turn_id,
        note=row.note,
    )


def _instant(at_ms: int | None) -> datetime | None:
    return None if at_ms is None else datetime.fromtimestamp(at_ms / 1000, UTC)
