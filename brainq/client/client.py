"""Client: submits turns, finds them again, and decides what people are asked."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Literal, Self, Unpack

from brainq.brain.brains import BrainsArgument, load_brains, read_brains
from brainq.client import checks
from brainq.client.approvals import ApprovalVerbs
from brainq.client.audit import AuditVerbs
from brainq.client.bulk import BulkThreads, BulkVerbs
from brainq.client.cell_lists import find_row, list_all_deliveries, list_sessions, list_turns
from brainq.client.cells import CellVerbs
from brainq.client.connection import Connection
from brainq.client.handle import TurnHandle
from brainq.client.lists import (
    PAGE_SIZE,
    checked_filter,
    find_turn,
    iterate_pages,
)
from brainq.client.memories import Memories
from brainq.client.options import (
    Cancelled,
    ContentFilters,
    SubmitOptions,
    TurnFilters,
    submit_fields,
    takes_submit_options,
)
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
from brainq.fleet.all_cells import read_all_activity, read_all_fleets, read_all_metrics, read_all_scales
from brainq.fleet.scale import ScaleRequest
from brainq.observe.spans import submit_span
from brainq.people.admission import read_submit
from brainq.settings.deployment import Settings, settings_here
from brainq.wiring import Wiring
from brainq.wiring.cells import Cells, open_cells


class Client(ScheduleVerbs, ApprovalVerbs, SpendVerbs, CellVerbs, StopVerbs, VersionVerbs, AuditVerbs, BulkVerbs):
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
        self._connection = Connection(open_cells(settings, brains, redis_url))
        self._bulks = BulkThreads()

    @property
    def brains(self) -> tuple[str, ...]:
        """Their names; the first is the default's."""
        return self._connection.cells.home.brains.names

    @property
    def memories(self) -> Memories:
        """What brains remember over turns, to be listed and forgotten."""
        return Memories(self)

    @takes_submit_options
    def submit(self, session_id: str, user_message: str, **options: Unpack[SubmitOptions]) -> TurnHandle:
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
                      in SQL, under their hash; see docs/guides/providers.md for what models are shown of them
        greeting      the assistant's words before the user's first, such as a chat page's first line; only the first
                      turn of a session takes it
        history       a conversation that was had elsewhere, before this message: messages of user, assistant (with the
                      `calls` it made) and tool, up to 1,000; only the first turn of a session takes it. As dicts they
                      may have `attachments`, too
        client_tools  tools that you run yourself, beside the brain's: a call of one waits, and holds no worker, until
                      `handle.give_result(call_id, ...)`
        brain         the name of the brain that is to have the turn; by default the first. A message that goes into
                      another turn is that turn's brain's
        turn_id       an id of yours for the turn; the same id again is the same turn
        metadata      small JSON of yours, which callbacks get back; `prompt_tags` are kept with the turn, too
        model, provider, system_prompt, skill_context, cwd, show_citations, prompt_id, prompt_version
                      those of this turn, over the brain's

        Raises InvalidInput naming the field, before anything is stored; SubmitConflict when the
        request_key or turn_id was used with other content; SessionBusy; BuildUnserved; QueueFull where too many turns
        wait; MailboxFull where it is input; Unreachable, whose `request_key` makes a second try the same turn.
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
                find=lambda cells: cells.settle(session_id),
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

        timeout_s   seconds in all; None: as long as the turn takes, which its own limit bounds
        options     as `submit` takes them

        Raises as `submit`, ResultTimeout, and TurnParked where the turn waits for a person, or for a client tool:
        else the caller would wait as long without knowing why.
        """
        handle = self.submit(session_id, user_message, **options)
        if handle.wait(NEEDS_CALLER, timeout_s) == "parked":
            raise turn_parked_error(handle.turn_id, handle.session_id, handle.snapshot(), handle.approvals())
        return handle.result()

    def handle(self, turn_id: str) -> TurnHandle:
        """The handle of a turn submitted earlier, by any process. Raises TurnNotFound."""
        row = self._connection.read_all(lambda cells: cells.turn_row(turn_id))
        return TurnHandle(self, row.session_id, turn_id)

    def find(self, sought: str) -> TurnHandle:
        """The handle of the turn with this id or request key, or of the one whose id begins so, as people write it.

        Raises TurnNotFound, or InvalidInput when several begin so.
        """
        row = find_turn(self._connection.read_all(lambda cells: cells.find_rows(sought)), sought)
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
        after: str | None = None,
        **filters: Unpack[ContentFilters],
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
        unknown        only those with a write of which nobody knows whether it happened
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
        wanted = checked_filter(session, state, session_prefixes, **filters)
        return self._connection.read_all(lambda cells: list_turns(cells, wanted, limit, after))

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
        return self._connection.read_all(lambda cells: list_sessions(cells, prefix, limit, session_prefixes, after))

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
        given up, and Redis. Asks no worker; docs/operate/operations.md says of each fact where it is from."""
        return self._connection.read_all(read_all_fleets)

    def activity(self) -> FleetActivity:
        """What the fleet did in each minute of the last hour, from SQL: turns, failures, how long they took, costs."""
        return self._connection.read_all(read_all_activity)

    def scale(
        self,
        pool: str | None = None,
        *,
        least: int | None = None,
        most: int | None = None,
        build: str | None = None,
    ) -> FleetScale:
        """How many workers each pool wants, or `pool` alone: what is queued and runs over a worker's threads, within
        `least` and `most` (else BRAINQ_SCALE_MIN, _MAX). Raises InvalidInput; SetupError with a broker elsewhere.

        build   how many of this build's workers; each build within the bounds
        """
        request = ScaleRequest(pool, least, most, build)
        return self._connection.read_all(lambda cells: read_all_scales(cells, request))

    def metrics(self) -> str:
        """The fleet's metrics in Prometheus' text format: what all workers counted, and what Redis and SQL report now.
        What is away is left out, and `brainq_up` says so. docs/operate/metrics.md has all of them."""
        from brainq.observe.metrics.prometheus import prometheus_text

        return prometheus_text(self._connection.read_all(read_all_metrics))

    def cancel(self, session_id: str, turn_id: str, reason: str = "") -> Cancelled:
        """See `TurnHandle.cancel`."""
        return self._connection.do(
            lambda wiring: cancel_turn(wiring, session_id, turn_id, reason),
            NewAct("cancel", reason=reason, session_id=session_id, turn_id=turn_id),
            session=session_id,
        )

    def state(self, session_id: str, turn_id: str) -> TurnRuntimeState:
        """The turn's shared state, attached to by its ids."""
        return TurnRuntimeState(self, session_id, turn_id)

    def deliveries(
        self,
        state: str | None = None,
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        after: int | str | None = None,
    ) -> tuple[DeliveryRow, ...]:
        """What webhooks were, or are to be, sent, the newest first.

        state      pending, done, dead; None: any. Raises InvalidInput for another
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)
        after      the `row` of the last one of the page at hand
        """
        return self._connection.read_all(
            lambda cells: list_all_deliveries(cells, state, limit, session_prefixes, after)
        )

    def send_again(self, delivery: int | str, session_prefixes: Sequence[str] | None = None) -> bool:
        """A dead delivery, by its `row`, is due at once, as if it were new; False where none of these sessions is."""
        prefixes = checks.session_prefixes(session_prefixes)

        def revive(cells: Cells) -> bool:
            wiring, row = find_row(cells, "delivery", delivery)
            return wiring.store.deliveries.revive(row, prefixes)

        return self._connection.do_in_all(revive, NewAct("send again", str(delivery)))

    def begin_try(self, digest: str, number: int, *, is_refused: bool = False, older: str = "") -> str:
        """A key to submit under, for fronts whose clients bring none but say which try a request is. What they tried
        within a quarter of an hour is known.

        digest      of who asks, and what: the same is the same content
        number      which try its client says it is, from 0
        is_refused  it is refused, and may come again
        older       the words that the previous release knew the content by
        """
        before = hashlib.sha256(older.encode("utf-8", "surrogatepass")).hexdigest() if older else ""

        def begin(wiring: Wiring) -> str:
            return wiring.state.request_keys.begin(digest, number, is_refused=is_refused, older=before)

        return self._connection.do_in_all(lambda cells: cells.first_to_answer(digest, begin), "the turn has a row")

    def end_try(self, digest: str, key: str, number: int, how: Literal["refused", "cut", "sent", "over"]) -> None:
        """Note how a try ended: `refused`, `cut`, `sent` whole, or `over` where its client does not come again."""

        def end(wiring: Wiring) -> None:
            wiring.state.request_keys.end(digest, key, number, how)

        self._connection.do_in_all(lambda cells: cells.first_to_answer(digest, end), "the turn has a row")

    def ping(self) -> None:
        """Raise Unreachable where Redis or SQL does not answer or takes no writes, and SetupError where there is none.
        Of several cells one that does is enough: the others' tenants are its own."""
        self._connection.read_all(lambda cells: cells.look())

    def close(self) -> None:
        """Stop bulks that go on here, and close the connections to Redis and SQL."""
        self._bulks.close()
        self._connection.cells.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
