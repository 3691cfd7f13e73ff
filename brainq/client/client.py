"""Client: submits turns, finds them again, and decides on their calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, Self, Unpack

from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import Cells, open_cells
from brainq.client import checks
from brainq.client.approvals import ApprovalVerbs
from brainq.client.audit import AuditVerbs
from brainq.client.bulk import BulkThreads, BulkVerbs
from brainq.client.cell_lists import find_row, list_all_deliveries, list_sessions, list_turns
from brainq.client.cells import CellVerbs
from brainq.client.connection import Connection
from brainq.client.handle import TurnHandle
from brainq.client.lists import checked_filter
from brainq.client.memories import Memories
from brainq.client.options import (
    Cancelled,
    ContentFilters,
    SubmitOptions,
    TurnFilters,
    submit_fields,
    takes_submit_options,
)
from brainq.client.paging import PAGE_SIZE, find_turn, iterate_pages
from brainq.client.runtime_state import TurnRuntimeState
from brainq.client.schedules import ScheduleVerbs
from brainq.client.session import Session
from brainq.client.spending import SpendVerbs
from brainq.client.stops import StopVerbs
from brainq.client.versions import VersionVerbs
from brainq.client.waiting import NEEDS_CALLER, cancel_turn, turn_parked_error
from brainq.contracts.act import NewAct
from brainq.contracts.fleet import Fleet, FleetActivity, FleetScale
from brainq.contracts.history import ListedSession, ListedTurn
from brainq.contracts.ids import check_id
from brainq.contracts.turn import TurnResult
from brainq.contracts.webhook import DeliveryRow
from brainq.engine.brain.brains import BrainsArgument, load_brains, read_brains
from brainq.engine.people.admission import read_submit
from brainq.fleet.all_cells import read_all_activity, read_all_fleets, read_all_metrics, read_all_scales
from brainq.fleet.scale import ScaleRequest
from brainq.runtime.observe.spans import submit_span
from brainq.runtime.settings.deployment import Settings, settings_here


class Client(ScheduleVerbs, ApprovalVerbs, SpendVerbs, CellVerbs, StopVerbs, VersionVerbs, AuditVerbs, BulkVerbs):
    """A client that submits turns. Thread-safe; one per process is enough.

    client = Client()                    # settings and brain from BRAINQ_..., and .env in the working directory
    handle = client.submit("session-1", "What is on my list?")
    print(handle.result(timeout_s=60).text)

    brain: one brain, or several in a list, tuple or mapping. A turn names the brain that it is for.
    """

    def __init__(
        self, settings: Settings | None = None, brain: BrainsArgument | None = None, *, redis_url: str = ""
    ) -> None:
        settings = settings or settings_here()
        brains = load_brains(settings.app) if brain is None else read_brains(brain)
        self._connection = Connection(open_cells(settings, brains, redis_url))
        self._bulks = BulkThreads()

    @property
    def brains(self) -> tuple[str, ...]:
        """The names of the brains. The first is the default."""
        return self._connection.cells.home.brains.names

    @property
    def memories(self) -> Memories:
        """The memories that brains keep across turns."""
        return Memories(self)

    @takes_submit_options
    def submit(self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]) -> TurnHandle:
        """Accept a turn. Returns once SQL has it.

        request_key   a submit with a key that was used before returns the turn of the first one
        limits        overrides of the brain's limits for this turn
        options       overrides of the brain's model options: temperature, tool_choice, reasoning_effort and others;
                      headers and parameters may be given by code alone
        on_busy       what to do if the session has a live turn: `enqueue` behind the others; `steer` into the live one;
                      `interrupt` it and run next; `replace` it and drop the waiting turns; `reject` with
                      SessionBusy; `merge` into the newest waiting turn. If the message went into another turn,
                      the handle is that turn's, and its `joined` is the receipt
        priority      `high`, `normal` or `low`: the order among turns of the same tenant while the fleet has no room
        kind          `review`: a turn with its own history, of which only the outcome is kept; `compact`: the
                      session's older messages are replaced by a summary
        seed          what a review begins with: the `session`'s conversation so far, or `empty`
        output_schema a JSON schema, or a pydantic model class, that the answer must fit: `result.parsed` and
                      `result.parsed_as(Model)` hold it. If an answer does not fit, the model is asked again, at most
                      twice; then the turn ends as `invalid_output`
        readiness     False: no call with an effect starts before `handle.steer(..., readiness=True)`, or before the
                      hold is released. True: the turn is ready, whatever flags the session has. If the message goes
                      into another turn, it sets or lifts that turn's readiness hold
        attachments   images and files of the message: `[File.of("plan.png")]`. With them the message may be empty. SQL
                      keeps them under their hash; docs/guides/providers.md explains what models are shown of them
        greeting      the assistant's words before the user's first, such as a chat page's first line; only the first
                      turn of a session takes it
        history       an earlier conversation from elsewhere: up to 1,000 messages of user, assistant (with its
                      `calls`) and tool; only the first turn of a session takes it. Messages given as dicts may have
                      `attachments`
        client_tools  tools that you run yourself, in addition to the brain's: a call of one waits, and holds no
                      worker, until `handle.give_result(call_id, ...)`
        brain         the name of the brain for the turn; by default the first. A message that goes into another turn
                      is for that turn's brain
        turn_id       your own id for the turn; the same id again is the same turn
        metadata      small JSON that callbacks receive; `prompt_tags` are kept with the turn, too
        model, provider, system_prompt, skill_context, cwd, show_citations, prompt_id, prompt_version
                      overrides of the brain's for this turn

        Raises InvalidInput naming the field, before anything is stored; SubmitConflict if the request_key or turn_id
        was used with other content; SessionBusy; BuildUnserved; QueueFull if too many turns wait; MailboxFull if the
        message is input of a live turn; Unreachable, whose `request_key` makes a second try the same turn.
        """
        fields = submit_fields(Client.submit, options, session_id=session_id, user_message=user_message)
        request, files = read_submit(fields, self._connection.settings.file_limits)
        if options.get("turn_id") is None:
            request = self._connection.cells.named(request)
        with submit_span(request) as request:
            accepted = self._connection.do(
                lambda wiring: wiring.people.intake.submit(request, files),
                "the turn has a row",
                session=session_id,
                settles=True,
                request_key=request.key,
            )
        return TurnHandle(
            self, accepted.session_id, accepted.turn_id, created=accepted.created, joined=accepted.receipt
        )

    @takes_submit_options
    def run(
        self, session_id: str, user_message: str, *, timeout_s: float | None = None, **options: Unpack[SubmitOptions]
    ) -> TurnResult:
        """Submit a turn and wait for its result: `client.run("s1", "Hello").raise_for_ending().text`.

        timeout_s: seconds in all. None waits as long as the turn takes, which its own time limit bounds.
        options: as for `submit`.

        Raises as `submit`, ResultTimeout, and TurnParked if the turn waits for a person or for a client tool, which the
        caller would otherwise wait for without knowing why.
        """
        handle = self.submit(session_id, user_message, **options)
        if handle.wait(NEEDS_CALLER, timeout_s) == "parked":
            raise turn_parked_error(handle.turn_id, handle.session_id, handle.snapshot(), handle.approvals())
        return handle.result()

    def handle(self, turn_id: str) -> TurnHandle:
        """Return the handle of a turn that any process submitted earlier. Raises TurnNotFound."""
        row = self._connection.read_all(lambda cells: cells.turn_row(turn_id))
        return TurnHandle(self, row.session_id, turn_id)

    def find(self, sought: str) -> TurnHandle:
        """Return the handle of the turn with this id, id prefix or request key.

        Raises TurnNotFound, and InvalidInput if several turns have an id with this prefix.
        """
        row = find_turn(self._connection.read_all(lambda cells: cells.find_rows(sought)), sought)
        return TurnHandle(self, row.session_id, row.turn_id)

    def session(self, session_id: str) -> Session:
        """Return a session, to read its queue, pause it, or steer its live turn. Raises InvalidInput."""
        return Session(self, check_id("session_id", session_id))

    def turns(
        self,
        session: str | None = None,
        state: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
        **filters: Unpack[ContentFilters],
    ) -> tuple[ListedTurn, ...]:
        """List turns of all sessions, the newest first. Each filter keeps only the turns that it describes.

        session        turns of this session
        state          queued, active, parked, closing; accepted: any of these; ended; rejected; None: any
        limit          turns a page, up to 10,000
        session_prefixes   turns of sessions that begin with one of these prefixes, such as ("acme:",)
        brain          turns that name this brain; in a deployment with one brain, none does
        ending         completed, timed_out, cancelled, failed
        stop_reason    such as `answered` or `max_steps`
        failing        turns that failed or timed out, that have a call that failed, timed out or is unknown, or that
                       have an abandoned finalizer step
        unknown        turns with a write that may or may not have happened
        min_cost_usd   turns that have cost this many dollars or more so far
        since, until   turns that were accepted at `since` or later, and before `until`; with a time zone
        text           turns whose id or session's id contains it, or whose request key it is
        strategy       how turns reached their answers, by the decision records in SQL: direct_answer, tool_assisted,
                       retrieval_augmented, web_augmented
        search         turns whose message, answer, metadata (`customer=42`), tags or ids contain it; only the newest
                       20,000 before `until` are searched, because their content is read
        metadata       turns submitted with these values: `{"customer": 42}`, `{"order": {"id": "A-1"}}`; values are
                       compared as text, so 42 equals "42"; among the newest 20,000, as for `search`
        prompt_tags    turns submitted with all of these tags; among the newest 20,000, as for `search`
        sort           newest; oldest; cost or tokens: the highest first, of turns that have ended
        after          the id of the last turn of the previous page

        Pages follow each other without gaps or repeats while turns are added. The state of live turns comes from Redis,
        in two round trips a page. Raises InvalidInput.
        """
        wanted = checked_filter(session, state, session_prefixes, **filters)
        return self._connection.read_all(lambda cells: list_turns(cells, wanted, limit, after))

    def iterate_turns(self, **filters: Unpack[TurnFilters]) -> Iterator[ListedTurn]:
        """Iterate over every turn that `turns` lists. Pages are read as they are needed."""
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
        """List sessions that have a turn, the one with the newest turn first.

        prefix: sessions whose id begins with it.
        limit: sessions a page, up to 10,000.
        session_prefixes: sessions that begin with one of these prefixes, such as ("acme:",).
        after: the id of `last_turn` of the last session of the previous page.

        A session that gets a turn meanwhile moves to the first page. Raises InvalidInput.
        """
        return self._connection.read_all(lambda cells: list_sessions(cells, prefix, limit, session_prefixes, after))

    def iterate_sessions(
        self, prefix: str = "", session_prefixes: Sequence[str] | None = None
    ) -> Iterator[ListedSession]:
        """Iterate over every session that `sessions` lists. Pages are read as they are needed."""
        return iterate_pages(
            lambda after: self.sessions(prefix, PAGE_SIZE, session_prefixes, after=after),
            lambda session: session.last_turn.turn_id,
        )

    def fleet(self) -> Fleet:
        """Return the state of the fleet: workers of each pool, queues, lanes, turns by state, the sweeper, abandoned
        work, and Redis. Needs no answer from workers; docs/operate/operations.md explains where each fact is from."""
        return self._connection.read_all(read_all_fleets)

    def activity(self) -> FleetActivity:
        """Return the turns, failures, durations and costs of each minute of the last hour, from SQL."""
        return self._connection.read_all(read_all_activity)

    def scale(
        self,
        pool: str | None = None,
        *,
        least: int | None = None,
        most: int | None = None,
        build: str | None = None,
    ) -> FleetScale:
        """Return how many workers each pool, or `pool` alone, should have: queued and running work divided by the
        threads of a worker, at least `least` and at most `most` (by default BRAINQ_SCALE_MIN, _MAX).

        build: count the workers of this build only; the bounds apply to each build.

        Raises InvalidInput, and SetupError if Redis is not the broker.
        """
        request = ScaleRequest(pool, least, most, build)
        return self._connection.read_all(lambda cells: read_all_scales(cells, request))

    def metrics(self) -> str:
        """Return the fleet's metrics in Prometheus' text format: the counters of all workers, and readings of Redis and
        SQL. `brainq_up` reports a service that does not answer; its readings are omitted. See
        docs/operate/metrics.md."""
        from brainq.runtime.observe.metrics.prometheus import prometheus_text

        return prometheus_text(self._connection.read_all(read_all_metrics))

    def cancel(self, session_id: str, turn_id: str, reason: str = "") -> Cancelled:
        """See `TurnHandle.cancel`."""
        return self._connection.do(
            lambda wiring: cancel_turn(wiring, session_id, turn_id, reason),
            NewAct("cancel", reason=reason, session_id=session_id, turn_id=turn_id),
            session=session_id,
        )

    def state(self, session_id: str, turn_id: str) -> TurnRuntimeState:
        """Attach to the shared state of a turn."""
        return TurnRuntimeState(self, session_id, turn_id)

    def deliveries(
        self,
        state: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        after: int | str | None = None,
    ) -> tuple[DeliveryRow, ...]:
        """List webhook deliveries, the newest first.

        state: pending, done or dead. None lists all.
        session_prefixes: deliveries of sessions that begin with one of these prefixes, such as ("acme:",).
        after: the `row` of the last delivery of the previous page.

        Raises InvalidInput.
        """
        return self._connection.read_all(
            lambda cells: list_all_deliveries(cells, state, limit, session_prefixes, after)
        )

    def send_again(self, delivery: int | str, session_prefixes: Sequence[str] | None = None) -> bool:
        """Make a dead delivery, selected by its `row`, due at once, as if it were new. Returns False if these sessions
        have no such delivery."""
        prefixes = checks.session_prefixes(session_prefixes)

        def revive(cells: Cells) -> bool:
            wiring, row = find_row(cells, "delivery", delivery)
            return wiring.store.deliveries.revive(row, prefixes)

        return self._connection.do_in_all(revive, NewAct("send again", str(delivery)))

    def begin_try(self, digest: str, number: int, *, is_refused: bool = False, older: str = "") -> str:
        """Return a request key for a client that sends none but counts its tries. Tries are remembered for 15 minutes.

        digest: the hash of the caller and the content.
        number: the number of the try, from 0, as the client counts.
        is_refused: the request is refused and may be sent again.
        older: the text under which the previous release knew the content.
        """
        before = hashlib.sha256(older.encode("utf-8", "surrogatepass")).hexdigest() if older else ""

        def begin(wiring: Wiring) -> str:
            return wiring.state.request_keys.begin(digest, number, is_refused=is_refused, older=before)

        return self._connection.do_in_all(lambda cells: cells.first_to_answer(digest, begin), "the turn has a row")

    def end_try(self, digest: str, key: str, number: int, how: Literal["refused", "cut", "sent", "over"]) -> None:
        """Record how a try ended: `refused`, `cut` (interrupted), `sent` (complete), or `over` if its client will not
        try again."""

        def end(wiring: Wiring) -> None:
            wiring.state.request_keys.end(digest, key, number, how)

        self._connection.do_in_all(lambda cells: cells.first_to_answer(digest, end), "the turn has a row")

    def ping(self) -> None:
        """Check the connection. Raises Unreachable if Redis or SQL does not answer or accepts no writes, and SetupError
        if none is configured. If there are several cells, one that answers is enough."""
        self._connection.read_all(lambda cells: cells.look())

    def close(self) -> None:
        """Stop the bulks that run in this process, and close the connections to Redis and SQL."""
        self._bulks.close()
        self._connection.cells.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
