"""Client: submits turns, finds them again, and decides what people are asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Literal, Self, Unpack, cast

from brainq.brain.brains import BrainsArgument, read_brains
from brainq.brain.loading import load_brains
from brainq.client import checks, progress, schedules
from brainq.client.fleet import MAX_RECENT_TURNS, WINDOW, fleet_activity, read_fleet
from brainq.client.handle import TurnHandle
from brainq.client.internals import raises_unreachable, translate_unreachable
from brainq.client.lists import PAGE_SIZE, checked_filter, find_turn, iterate_pages, list_deliveries, make_turn_list
from brainq.client.memories import Memories
from brainq.client.metrics import read_metrics
from brainq.client.options import Cancelled, SubmitOptions, TurnFilters
from brainq.client.runtime_state import TurnRuntimeState
from brainq.client.session import Session
from brainq.contracts.file import File
from brainq.contracts.fleet import Fleet, FleetActivity
from brainq.contracts.history import ListedSession, ListedTurn, Sort
from brainq.contracts.ids import ALL_SESSIONS, check_id, check_prefixes
from brainq.contracts.message import Message
from brainq.contracts.model_options import ModelOptions, OptionsFields
from brainq.contracts.people import Approval
from brainq.contracts.schedule import Missed, OnRunning, Schedule
from brainq.contracts.tool import ClientTool
from brainq.contracts.turn import Limits, LimitsFields, LimitsOverride, OnBusy, Priority, TurnKind, TurnResult
from brainq.contracts.webhook import DeliveryRow
from brainq.errors import InvalidInput, TurnNotFound
from brainq.gates.answer_schema import OutputSchema
from brainq.observe.turn_spans import submit_span
from brainq.people.admission import read_submit
from brainq.people.outside import Taken
from brainq.settings.deployment import Settings, settings_here
from brainq.tools.results import OutcomeUnknown, ToolError
from brainq.wiring import Wiring


@raises_unreachable
class Client:
    """Submits turns. Thread-safe; one a process is enough.

    client = Client()                    # settings and brain from BRAINQ_..., and .env in the working directory
    handle = client.submit("session-1", "What is on my list?")
    print(handle.result(timeout_s=60).text)

    `brain` is one, or several in a list, tuple or mapping: a turn names which has it.
    """

    def __init__(
        self, settings: Settings | None = None, brain: BrainsArgument | None = None, *, redis_url: str = ""
    ) -> None:
        settings = settings or settings_here()
        brains = load_brains(settings.app) if brain is None else read_brains(brain)
        self._wiring = Wiring(settings, brains, redis_url=redis_url)

    @property
    def brains(self) -> tuple[str, ...]:
        """Their names; the first is the default's."""
        return self._wiring.brains.names

    @property
    def memories(self) -> Memories:
        """What brains remember over turns, to be listed and forgotten."""
        return Memories(self)

    def submit(
        self,
        session_id: str,
        user_message: str,
        *,
        request_key: str | None = None,
        turn_id: str | None = None,
        model: str | None = None,
        provider: str | None = None,
        system_prompt: str | None = None,
        skill_context: str | None = None,
        output_schema: OutputSchema | None = None,
        cwd: str | None = None,
        limits: Limits | LimitsOverride | LimitsFields | None = None,
        options: ModelOptions | OptionsFields | None = None,
        show_citations: bool | None = None,
        prompt_id: str | None = None,
        prompt_version: str | None = None,
        prompt_tags: tuple[str, ...] | list[str] = (),
        metadata: dict[str, Any] | None = None,
        on_busy: OnBusy = "enqueue",
        priority: Priority = "normal",
        kind: TurnKind = "chat",
        seed: Literal["session", "empty"] = "session",
        readiness: bool | None = None,
        attachments: Sequence[File | Mapping[str, Any]] = (),
        greeting: str | None = None,
        history: Sequence[Message | Mapping[str, Any]] = (),
        client_tools: Sequence[ClientTool | Mapping[str, Any]] = (),
        brain: str | None = None,
    ) -> TurnHandle:
        """Accept a turn; returns once SQL has it.

        request_key   the same key again is the same turn: nothing is submitted twice
        limits        overrides of the brain's limits for this turn
        options       how the model is asked, over the brain's: temperature, tool_choice, reasoning_effort and others;
                      not the headers and parameters that only code may give
        on_busy       when the session has a live turn: `enqueue` behind the others; `steer` into the live one;
                      `interrupt` it and run next; `replace` it and drop those that wait; `reject` with
                      SessionBusy; `merge` into the newest that waits. Where the message went into another turn,
                      the handle is that turn's, and its `joined` is the receipt
        priority      `high`, `normal` or `low`: which turns of its own tenant go first when the fleet has no room
        kind          `review`: a turn with a history of its own, which only its outcome leaves; `compact`: the
                      session's older messages are replaced by a summary
        seed          what a review begins with: the `session`'s conversation so far, or `empty`
        output_schema a JSON schema, or a pydantic model class, that the answer has to fit: `result.parsed` and
                      `result.parsed_as(Model)` hold it. The model is asked again where it does not fit, at most
                      twice; then the turn ends as `invalid_output`
        readiness     False: no call that changes something starts before `handle.steer(..., readiness=True)`, or
                      the hold is released; True: the turn is ready, whatever flags the session has. In a turn
                      that the message goes into it lifts or sets that turn's readiness hold
        attachments   images and files of the message, which may be empty then: `[File.of("plan.png")]`. They are kept
                      in SQL, under their hash; see docs/providers.md for what models are shown of them
        greeting      the assistant's words before the user's first, such as a chat page's first line; only the first
                      turn of a session takes it
        history       a conversation that was had elsewhere, before this message: messages of user, assistant (with the
                      `calls` it made) and tool, up to 1,000; only the first turn of a session takes it. As dicts they
                      may have `attachments`, too
        client_tools  tools that you run yourself, beside the brain's: a call of one waits, and holds no worker, until
                      `handle.give_result(call_id, ...)`
        brain         the name of the brain that is to have the turn; by default the first. A message that goes into
                      another turn is that turn's brain's
        The other arguments override the brain for this turn.

        Raises InvalidInput naming the field, before anything is stored; SubmitConflict when the
        request_key or turn_id was used with other content; SessionBusy; QueueFull where too many turns wait;
        MailboxFull where it is input; Unreachable, whose `request_key` makes a second try the same turn.
        """
        request, files = read_submit(
            {
                "turn_id": turn_id,
                "session_id": session_id,
                "user_message": user_message,
                "request_key": request_key,
                "model": model,
                "provider": provider,
                "system_prompt": system_prompt,
                "skill_context": skill_context,
                "output_schema": output_schema,
                "cwd": cwd,
                "limits": _limits_fields(limits),
                "options": options,
                "show_citations": show_citations,
                "prompt_id": prompt_id,
                "prompt_version": prompt_version,
                "prompt_tags": prompt_tags,
                "metadata": metadata,
                "on_busy": on_busy,
                "priority": priority,
                "kind": kind,
                "seed": seed,
                "readiness": readiness,
                "greeting": greeting,
                "attachments": attachments,
                "history": history,
                "client_tools": client_tools,
                "brain": brain,
            },
            self._wiring.settings.file_limits,
        )
        with translate_unreachable(request_key=request.key), submit_span(request) as request:
            submitted = self._wiring.people.intake.submit(request, files)
        return TurnHandle(
            self, submitted.session_id, submitted.turn_id, created=submitted.created, joined=submitted.receipt
        )

    def run(
        self, session_id: str, user_message: str, *, timeout_s: float | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnResult:
        """Submit a turn and wait for its result: `client.run("s1", "Hello").raise_for_ending().text`.

        timeout_s   seconds in all; None: as long as the turn takes, which its own limit bounds
        options     as `submit` takes them

        Raises as `submit`, ResultTimeout, and TurnParked where the turn waits for a person, or for a client tool:
        else the caller would wait as long without knowing why.
        """
        handle = self.submit(session_id, user_message, **options)
        if handle.wait(progress.NEEDS_CALLER, timeout_s) == "parked":
            raise progress.turn_parked_error(handle.turn_id, handle.session_id, handle.snapshot(), handle.approvals())
        return handle.result()

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
        """Have a turn begin at a time, once or again and again. The same name again sets its schedule anew.

        name         such as `acme:daily-report`; like a session's it begins with its tenant's prefix
        session_id   {date} and {time} in it are those of the due instant in `zone`, such as `acme:report-{date}`
        when         repeated, as Celery's beat takes it: `crontab(...)`, `schedule(...)`, a timedelta, seconds; or a
                     crontab's text, `*/5 9-17 * * mon-fri`
        at, in_s     once: at this time, which has a time zone; in so many seconds
        zone         an IANA time zone, by which a crontab goes
        on_running   where the turn of the last run has not ended: `skip` this one, or `queue` it
        missed       runs that could not begin when they were due: `once` for all of them, or `skip`
        options      as `submit` takes them, but for what belongs to one turn

        A due instant is one turn, whichever process dies: its request key is made of schedule and instant. Raises
        InvalidInput naming the field, and SchedulesFull where its tenant has as many as it may have.
        """
        limits = _limits_fields(options.get("limits"))
        fields = {**options, "limits": limits}
        row = schedules.schedule_row(
            self._wiring, name, session_id, user_message, when, at, in_s, zone, on_running, missed, fields
        )
        return schedules.set_schedule(self._wiring, row)

    def schedules(
        self,
        limit: int = 1000,
        name_prefixes: Sequence[str] | None = None,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str = "",
    ) -> tuple[Schedule, ...]:
        """Schedules by name.

        name_prefixes      only those that begin with one of these prefixes, such as ("acme:",)
        session_prefixes   only those whose session begins with one of these
        after      the last name of the page at hand
        """
        by_name = (ALL_SESSIONS,) if name_prefixes is None else check_prefixes("name_prefixes", name_prefixes)
        by_session = (
            (ALL_SESSIONS,) if session_prefixes is None else check_prefixes("session_prefixes", session_prefixes)
        )
        rows = self._wiring.store.schedules.list(by_name, checks.limit(limit), by_session, after)
        return tuple(schedules.schedule_from_row(row) for row in rows)

    def find_schedule(self, name: str) -> Schedule:
        """Raises ScheduleNotFound."""
        return schedules.schedule_from_row(schedules.get_schedule(self._wiring, name))

    def pause_schedule(self, name: str) -> Schedule:
        """Nothing of it begins until it is resumed. Raises ScheduleNotFound."""
        schedules.get_schedule(self._wiring, name)
        self._wiring.store.schedules.pause(name)
        return schedules.schedule_from_row(schedules.get_schedule(self._wiring, name))

    def resume_schedule(self, name: str) -> Schedule:
        """It goes on with its next due instant; what was due meanwhile is left out. Raises ScheduleNotFound."""
        return schedules.resume_schedule(self._wiring, name)

    def remove_schedule(self, name: str) -> bool:
        """False where there is none. Turns that it has begun go on."""
        return self._wiring.store.schedules.remove(name)

    def handle(self, turn_id: str) -> TurnHandle:
        """The handle of a turn submitted earlier, by any process. Raises TurnNotFound."""
        row = self._wiring.store.turns.get(turn_id)
        if row is None:
            raise TurnNotFound(f"no turn {turn_id!r} in SQL; `brainq list` shows the newest ones")
        return TurnHandle(self, row.session_id, turn_id)

    def find(self, sought: str) -> TurnHandle:
        """The handle of the turn with this id or request key, or of the one whose id begins so, as people write it.

        Raises TurnNotFound, or InvalidInput when several begin so.
        """
        row = find_turn(self._wiring.store, sought)
        return TurnHandle(self, row.session_id, row.turn_id)

    def session(self, session_id: str) -> Session:
        """A session, to look at its queue, pause it, or speak into whatever is live. Raises InvalidInput."""
        return Session(self, check_id("session_id", session_id))

    def turns(
        self,
        session: str | None = None,
        state: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        brain: str | None = None,
        ending: str | None = None,
        stop_reason: str | None = None,
        failing: bool = False,
        min_cost_usd: float | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str = "",
        strategy: str | None = None,
        search: str = "",
        sort: Sort = "newest",
        metadata: Mapping[str, Any] | None = None,
        prompt_tags: Sequence[str] = (),
        after: str | None = None,
    ) -> tuple[ListedTurn, ...]:
        """Turns of all sessions, the newest first.

        session        only of this session
        state          queued, active, parked, closing; accepted: any of these; ended; rejected; None: any
        limit          turns a page, up to 10,000
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)
        brain          only those that name this brain; in a deployment of one, none does
        ending         completed, timed_out, cancelled, failed
        stop_reason    such as `answered` or `max_steps`
        failing        only those that failed or timed out, or that have a call that failed, timed out or is unknown, or
                       a finalizer step given up
        min_cost_usd   only those that cost so many dollars or more, so far
        since, until   only those that were accepted at `since` or later, before `until`; with a time zone
        text           only those whose id, or whose session's, holds it, or whose request key it is
        strategy       how they came to their answers, by the decision records that SQL keeps: direct_answer,
                       tool_assisted, retrieval_augmented, web_augmented
        search         only those whose message, answer, metadata (`customer=42`), tags or ids hold it; of the newest
                       20,000 before `until`, because it reads them
        metadata       only those submitted with these values: `{"customer": 42}`, `{"order": {"id": "A-1"}}`; compared
                       as text, so that 42 is "42"; of the newest 20,000, as `search`
        prompt_tags    only those submitted with all of these tags; of the newest 20,000, as `search`
        sort           newest; oldest; cost or tokens: the highest first, of those that have ended
        after          the id of the last turn of the page at hand: gives the page after it

        Pages follow each other without a gap or a repeat while turns are added. What a turn that has not ended does
        comes from Redis, for a page in two round trips. Raises InvalidInput.
        """
        filters = checked_filter(
            session,
            state,
            session_prefixes,
            brain=brain,
            ending=ending,
            stop_reason=stop_reason,
            failing=failing,
            min_cost_usd=min_cost_usd,
            since=since,
            until=until,
            text=text,
            strategy=strategy,
            search=search,
            sort=sort,
            metadata=metadata,
            prompt_tags=prompt_tags,
        )
        return make_turn_list(self._wiring).turns(filters, limit, after)

    def iterate_turns(self, **filters: Unpack[TurnFilters]) -> Iterator[ListedTurn]:
        """Every turn that `turns` would list, page by page as it is needed."""
        return iterate_pages(
            lambda after: self.turns(limit=PAGE_SIZE, after=after, **filters), lambda turn: turn.turn_id
        )

    def sessions(
        self,
        prefix: str = "",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[ListedSession, ...]:
        """Sessions that have a turn, the one with the newest turn first.

        prefix     only those whose id begins so
        limit      sessions a page, up to 10,000
        session_prefixes   only those that begin with one of these prefixes, such as ("acme:",)
        after      the id of `last_turn` of the last session of the page at hand: gives the page after it

        A session that gets a turn meanwhile moves to the first page. Raises InvalidInput.
        """
        return make_turn_list(self._wiring).sessions(prefix, limit, session_prefixes, after)

    def iterate_sessions(
        self, prefix: str = "", session_prefixes: Sequence[str] | None = None
    ) -> Iterator[ListedSession]:
        """Every session that `sessions` would list, page by page as it is needed."""
        return iterate_pages(
            lambda after: self.sessions(prefix, PAGE_SIZE, session_prefixes, after=after),
            lambda session: session.last_turn.turn_id,
        )

    def fleet(self) -> Fleet:
        """What runs turns, at this moment: workers of each pool, queues, lanes, turns by state, the sweeper, what was
        given up, and Redis. Asks no worker; docs/operations.md says of each fact where it is from."""
        return read_fleet(self._wiring)

    def activity(self) -> FleetActivity:
        """What the fleet did in each minute of the last hour, from SQL: turns, failures, how long they took, costs."""
        now = datetime.now(UTC)
        return fleet_activity(self._wiring.store.turn_lists.recent(now - WINDOW, MAX_RECENT_TURNS), now)

    def metrics(self) -> str:
        """The fleet's metrics in Prometheus' text format: what all workers counted, and what Redis and SQL report now.

        What is away is left out, and `brainq_up` says so. docs/metrics.md has all of them.
        """
        from brainq.observe.metrics.exposition import prometheus_text

        return prometheus_text(read_metrics(self._wiring))

    def approvals(
        self,
        session: str | None = None,
        state: str | None = "pending",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[Approval, ...]:
        """Calls that people are, or were, asked to approve, the newest first.

        state      pending, approved, denied, expired, void (its turn ended first); None or `all`: any
        after      the id of the last approval of the page at hand: gives the page after it
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)
        """
        return self._wiring.people.approvals.list(
            None if session is None else check_id("session", session),
            checks.approval_state(state),
            checks.limit(limit),
            None if session_prefixes is None else check_prefixes("session_prefixes", session_prefixes),
            None if after is None else checks.approval(after),
        )

    def iterate_approvals(
        self, session: str | None = None, state: str | None = "pending", session_prefixes: Sequence[str] | None = None
    ) -> Iterator[Approval]:
        """Every approval that `approvals` would list, page by page as it is needed."""
        return iterate_pages(
            lambda after: self.approvals(session, state, PAGE_SIZE, session_prefixes, after=after),
            lambda approval: approval.id,
        )

    def approval(self, approval_id: str) -> Approval:
        """One approval as it is now. Raises ApprovalNotFound."""
        return self._wiring.people.approvals.get(checks.approval(approval_id))

    def approve(self, approval_id: str, *, by: str = "", args_hash: str | None = None) -> Approval:
        """Let a call run. Doing it again changes nothing, and returns the approval as it is.

        by          who decides, for the record
        args_hash   `approval.args_hash` as it was shown: a decision for other arguments is then refused

        Raises ApprovalDecided when it was denied, has expired, or its turn is over; ApprovalNotFound.
        """
        return self._wiring.people.approvals.approve(
            checks.approval(approval_id), by=_checked_name(by), args_hash=_checked_hash(args_hash)
        )

    def deny(self, approval_id: str, reason: str = "", *, by: str = "") -> Approval:
        """Refuse a call; the model reads `reason`, and the turn goes on. Raises as `approve`."""
        return self._wiring.people.approvals.deny(
            checks.approval(approval_id),
            reason=checks.text("reason", reason, checks.MAX_COMMENT_CHARS),
            by=_checked_name(by),
        )

    def edit(
        self, approval_id: str, arguments: Mapping[str, Any], *, by: str = "", args_hash: str | None = None
    ) -> Approval:
        """Let a call run with these arguments in place of the model's; the model reads which.

        args_hash   of the arguments that were edited, as they were shown; see `approve`

        Raises InvalidInput when they do not fit the tool's schema, else as `approve`.
        """
        return self._wiring.people.approvals.edit(
            checks.approval(approval_id), arguments, by=_checked_name(by), args_hash=_checked_hash(args_hash)
        )

    def complete_call(self, token: str, result: Any, *, partial: bool = False) -> Taken:
        """Give a call that returned `Pending(token)` its result, once, from any process: JSON, a File, or
        `WithFiles(JSON, [File, ...])`.

        Returns `settled`; `early`, when the tool has not returned yet; or `late`, when no call waits any more.
        Raises TokenRefused for a token no call waits for, or that was used before; InvalidInput.
        """
        return self._wiring.people.outside.complete(token, result, partial=partial)

    def fail_call(self, token: str, error: str | ToolError | OutcomeUnknown) -> Taken:
        """Give a call that returned `Pending(token)` an error in place of a result. As `complete_call`.

        error   one line for the model; or ToolError for longer words of your own, OutcomeUnknown for a change that may
                or may not have been made
        """
        return self._wiring.people.outside.fail(token, error)

    def cancel(self, session_id: str, turn_id: str, reason: str = "") -> Cancelled:
        """See `TurnHandle.cancel`."""
        return progress.cancel_turn(self._wiring, session_id, turn_id, reason)

    def state(self, session_id: str, turn_id: str) -> TurnRuntimeState:
        """The turn's shared state, attached to by its ids."""
        return TurnRuntimeState(self, session_id, turn_id)

    def deliveries(
        self,
        state: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        after: int | None = None,
    ) -> tuple[DeliveryRow, ...]:
        """What webhooks were, or are to be, sent, the newest first.

        state      pending, done, dead; None: any
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)
        after      the `row` of the last one of the page at hand

        Raises InvalidInput.
        """
        return tuple(list_deliveries(self._wiring.store, state, limit, session_prefixes, after))

    def send_again(self, delivery: int, session_prefixes: Sequence[str] | None = None) -> bool:
        """A dead delivery, by its `row`, is due at once, as if it were new; False where none of these sessions is."""
        theirs = None if session_prefixes is None else check_prefixes("session_prefixes", session_prefixes)
        return self._wiring.store.deliveries.revive(delivery, theirs)

    def begin_try(self, digest: str, number: int, *, is_refused: bool = False, older: str = "") -> str:
        """A key to submit under, for fronts whose clients bring none but say which try a request is. What they tried
        within a quarter of an hour is known.

        digest      of who asks, and what: the same is the same content
        number      which try its client says it is, from 0
        is_refused  it is refused, and may come again
        older       the words that the previous release knew the content by
        """
        before = hashlib.sha256(older.encode("utf-8", "surrogatepass")).hexdigest() if older else ""
        return self._wiring.state.request_keys.begin(digest, number, is_refused=is_refused, older=before)

    def end_try(self, digest: str, key: str, number: int, how: Literal["refused", "cut", "sent", "over"]) -> None:
        """Note how a try ended: `refused`, `cut`, `sent` whole, or `over` where its client does not come again."""
        self._wiring.state.request_keys.end(digest, key, number, how)

    def ping(self) -> None:
        """Raise Unreachable where Redis does not answer, and SetupError where there is none."""
        self._wiring.look(sql=False)

    def close(self) -> None:
        """Close the connections to Redis and SQL."""
        self._wiring.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _checked_name(by: object) -> str:
    return checks.text("by", by, checks.MAX_NAME_CHARS)


def _checked_hash(args_hash: object) -> str | None:
    return None if args_hash is None else checks.text("args_hash", args_hash, 200)


def _limits_fields(limits: object) -> Mapping[str, Any] | None:
    match limits:
        case None:
            return None
        case Limits() | LimitsOverride():
            return limits.model_dump(exclude_unset=True)
        case dict():
            return cast("dict[str, Any]", limits)
        case _:
            raise InvalidInput("limits", f"use Limits, or a dict of its fields, not {type(limits).__name__}")
