"""Operator: looks at turns, from SQL and, if it is there, Redis; and mends what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from brainq.brain.brain import Brain
from brainq.brain.brains import BrainsArgument
from brainq.client import checks
from brainq.client.cell_lists import list_all_deliveries, list_sessions, list_turns
from brainq.client.checks import MAX_LISTED
from brainq.client.client import Client
from brainq.client.connection import cells_of, connection_of
from brainq.client.erase import erase_everywhere
from brainq.client.handle import TurnHandle, explain_next
from brainq.client.history import History, make_history
from brainq.client.lists import TurnList, checked_filter, find_turn, list_deliveries
from brainq.client.options import TurnFilters
from brainq.client.retries import retry_step, steps_to_run
from brainq.client.timeline import read_timeline
from brainq.client.turn_facts import CallFacts, TurnFacts, call_of_intents
from brainq.contracts.act import NewAct
from brainq.contracts.cell import parse_row
from brainq.contracts.erasure import Erasure, ErasureScope
from brainq.contracts.event import EventKind, TurnEvent, TurnTimeline
from brainq.contracts.fleet import FleetTrouble
from brainq.contracts.history import ListedSession, ListedTurn
from brainq.contracts.ids import split_call_id
from brainq.contracts.message import Message
from brainq.contracts.people import Approval, StandingHold
from brainq.contracts.rows import TurnRow
from brainq.contracts.stop import Stop
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.contracts.webhook import DeliveryRow
from brainq.devserver.redis_server import known_redis
from brainq.errors import CallNotFound, ContentNotKept, InvalidInput, ResultTimeout, SetupError, Unreachable
from brainq.finalize.rerun import Retried
from brainq.fleet.snapshot import read_redis_fleet
from brainq.settings.deployment import Settings, settings_here
from brainq.state.connection import redis_refusal
from brainq.store.audit import record_act
from brainq.store.store import Store

if TYPE_CHECKING:
    from brainq.client.content_keys import ContentKeys


def open_client(settings: Settings, brain: BrainsArgument | None = None) -> Client:
    """A client whose Redis answers; without `brain` it has that of the settings. Raises SetupError."""
    client = Client(settings, brain, redis_url=known_redis(settings))
    try:
        cells_of(client).ping()  # a Redis that takes no writes can be looked at
    except Unreachable as away:
        client.close()
        if away.__cause__ is not None and redis_refusal(away.__cause__) is not None:
            raise SetupError(str(away)) from away
        raise SetupError(f"{away}; start it, or correct BRAINQ_REDIS_URL; `brainq doctor` says more") from away
    except BaseException:
        client.close()
        raise
    return client


class Operator:
    """Looks at any turn: the brain's code need not be here, and SQL is enough.

        with Operator() as operator:
            for turn in operator.turns(ending="failed"):
                print(turn.turn_id, turn.note)

    brain   needed by `retry` only, which runs its steps here

    Raises SetupError when there is no Redis and no database either.
    """

    def __init__(self, settings: Settings | None = None, brain: BrainsArgument | None = None) -> None:
        self.settings = settings or settings_here()
        self.why_away = ""
        """Why Redis cannot be asked; "" while it can."""
        self._client: Client | None = None
        # Looking at turns asks nothing of a brain, so any will do.
        brain = Brain("operator", "offline:rules") if brain is None else brain
        if len(self.settings.all_cells()) > 1:  # one that is away is missing in what the others show
            self._client = Client(self.settings, brain)
            return
        try:
            self._client = open_client(self.settings, brain)
        except SetupError as away:
            url = self.settings.sql_address
            sqlite = url.removeprefix("sqlite:///")
            if sqlite != url and not Path(sqlite).exists():  # opening it would make an empty one
                raise
            self.why_away = str(away)
            self._store = Store.open(url, keys=self.settings.key_place)

    @property
    def client(self) -> Client:
        """For what is done to turns. Raises SetupError while Redis is away."""
        if self._client is None:
            raise SetupError(self.why_away)
        return self._client

    def find(self, sought: str) -> TurnRow:
        """As `Client.find`, and what SQL knows of it."""
        return find_turn(self._matches(sought), sought)

    def turns(
        self, *, limit: int = 50, after: str | None = None, **filters: Unpack[TurnFilters]
    ) -> tuple[ListedTurn, ...]:
        """As `Client.turns`; while Redis is away, what SQL knows."""
        wanted = checked_filter(**filters)
        if self._client is not None:
            return list_turns(cells_of(self._client), wanted, limit, after)
        return TurnList(self._store, None).turns(wanted, limit, after)

    def sessions(
        self,
        prefix: str = "",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[ListedSession, ...]:
        """As `Client.sessions`; while Redis is away, what SQL knows."""
        if self._client is not None:
            return list_sessions(cells_of(self._client), prefix, limit, session_prefixes, after)
        return TurnList(self._store, None).sessions(prefix, limit, session_prefixes, after)

    def facts(self, sought: str) -> TurnFacts:
        """All that Redis and SQL know of a turn. Raises as `find`."""
        row = self.find(sought)
        store, history, turn_id = self._store_of(row), self._history(row), row.turn_id
        handle = None if self._client is None or row.state == "rejected" else self._client.handle(turn_id)
        snapshot = None if handle is None else handle.snapshot()
        result = _result(handle) or store.turns.result(turn_id)
        messages, no_messages = _messages(row, history)
        return TurnFacts(
            row=row,
            request=store.turns.request(turn_id),
            snapshot=snapshot,
            result=result,
            steps=store.steps.of_turn(turn_id),
            intents=store.calls.of_turn(turn_id),
            calls=history.calls(row.session_id, turn_id, MAX_LISTED, None),
            spends=store.spends.of_turn(turn_id) or list(result.spends if result else ()),
            judgements=store.judgements.of_turn(turn_id),
            memories=store.memories.of_turn(turn_id),
            observations=store.observations.of_turn(turn_id),
            approvals=store.approvals.of_turn(turn_id) if handle is None else list(handle.approvals()),
            holds=_holds(handle, snapshot),
            inputs=[
                (sent, sent.receipt if handle is None else handle.receipt(sent.client_message_id))
                for sent in store.inputs.of_turn(turn_id)
            ],
            messages=messages,
            no_messages=no_messages,
            retries=_retries(handle),
            next=self._next_sentence(row, snapshot),
            troubles=() if handle is None or row.ended_at is not None else self._troubles(row),
            decision=store.decisions.get(turn_id) if handle is None else handle.decision(),
        )

    def timeline(self, sought: str) -> TurnTimeline:
        """As `TurnHandle.timeline`, of the turn that `find` finds; while Redis is away, what SQL knows."""
        row = self.find(sought)
        if self._client is None:
            return read_timeline(self._store, None, row, ())
        return self._client.handle(row.turn_id).timeline()

    def call(self, sought: str) -> CallFacts | None:
        """Return what is known of the call with this id; the part that names its turn is read as `find` does. Returns
        None if the name is a turn's, or no call's. Raises TurnNotFound, CallNotFound, InvalidInput."""
        if self._matches(sought):
            return None
        try:
            turn, call_id = split_call_id(sought)
        except InvalidInput:
            return None
        row = self.find(turn)
        intents = [one for one in self._store_of(row).calls.of_turn(row.turn_id) if one.call_id == call_id]
        for call in self._history(row).calls(row.session_id, row.turn_id, checks.MAX_LISTED, None):
            if call.call_id == call_id:
                return CallFacts(call, intents)
        if intents:
            return CallFacts(call_of_intents(intents), intents)
        raise CallNotFound(f"turn {row.turn_id!r} has no call {call_id}; `brainq show {row.turn_id}` has them all")

    def _matches(self, sought: str) -> Sequence[TurnRow]:
        if self._client is not None:
            return cells_of(self._client).find_rows(sought)
        return self._store.turns.find(sought) if sought else ()

    def _store_of(self, row: TurnRow) -> Store:
        """SQL of the cell that has the turn."""
        return self._store if self._client is None else cells_of(self._client).of_session(row.session_id).store

    def _history(self, row: TurnRow) -> History:
        if self._client is None:
            return History(self._store, None)
        return make_history(cells_of(self._client).of_session(row.session_id))

    def _troubles(self, row: TurnRow) -> tuple[FleetTrouble, ...]:
        assert self._client is not None
        return read_redis_fleet(cells_of(self._client).of_session(row.session_id)).troubles

    def _next_sentence(self, row: TurnRow, snapshot: TurnSnapshot | None) -> str:
        if self._client is not None or row.state == "rejected":
            wiring = self._client and cells_of(self._client).of_session(row.session_id)
            return explain_next(row, snapshot, self.settings, wiring and wiring.state.workers)
        if row.ended_at is not None:
            return f"ended as {row.state}; nothing more happens, Redis is away and SQL keeps what is below"
        return f"not ended as far as SQL knows; what it does now is in Redis, which is away: {self.why_away}"

    def approvals(
        self,
        session: str | None = None,
        state: str | None = "pending",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[Approval, ...]:
        """As `Client.approvals`; while Redis is away, what SQL knows."""
        if self._client is not None:
            return self._client.approvals(session, state, limit, session_prefixes, after=after)
        prefixes = checks.session_prefixes(session_prefixes)
        place = None
        if after is not None:
            place = self._store.approvals.row_number(*split_call_id(checks.approval(after)), prefixes)
            if place is None:
                raise InvalidInput("after", f"there is no approval {after!r}; begin with the first page")
        rows = self._store.approvals.list(session, checks.approval_state(state), checks.limit(limit), place, prefixes)
        return tuple(row.approval for row in rows)

    def given_up(self, turn_id: str, step: str = "") -> list[str]:
        """What `retry` may run: every dead finalizer step and judgement of the turn, or what `step` names.

        step   a step; `judge:NAME`; `judges`

        Raises InvalidInput for what is not known, or needs no retry.
        """
        return steps_to_run(connection_of(self.client), turn_id, step)

    def retry(self, turn_id: str, step: str) -> Retried:
        """Run one of them here. What it writes to SQL is written once, whichever process tries.

        Raises TurnNotFound, and InvalidInput when the turn's content is nowhere any more.
        """
        return retry_step(connection_of(self.client), self.find(turn_id).session_id, turn_id, step)

    def deliveries(
        self, state: str | None = None, limit: int = 50, session_prefixes: Sequence[str] | None = None
    ) -> list[DeliveryRow]:
        """What webhooks were, or are to be, sent, the newest first.

        state      pending, done, dead; None: any
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)

        Raises InvalidInput.
        """
        if self._client is not None:
            return list(list_all_deliveries(cells_of(self._client), state, limit, session_prefixes, None))
        return list_deliveries(self._store, state, limit, session_prefixes)

    def send_again(self, delivery: int | str | None) -> int:
        """A dead delivery, or (None) every one, is due at once, as if it were new; how many were dead."""
        if self._client is not None and delivery is not None:
            return int(self._client.send_again(delivery))
        act = NewAct("send again", "" if delivery is None else str(delivery))
        if self._client is not None:
            return connection_of(self._client).do_in_all(
                lambda cells: sum(cells.ask(lambda wiring: wiring.store.deliveries.revive_all()).values), act
            )
        rows = self._store.deliveries
        count = rows.revive_all() if delivery is None else int(rows.revive(parse_row("delivery", delivery)[1]))
        if count:
            record_act(self._store, act)
        return count

    def erase(
        self, *, session: str | None = None, tenant: str | None = None, by: str = "", wait_s: float = 60.0
    ) -> Erasure:
        """Erase everything about a session, or about a tenant such as `acme:`, for good; look that nothing is left.

        Its turns are cancelled first. SQL, Redis, files, memories, schedules and deliveries go; tokens stay.

        by        who asked for it, for the receipt
        wait_s    how long its turns have to end

        Raises InvalidInput; ResultTimeout where turns do not end, before anything is deleted; SetupError while Redis
        is away.
        """
        scope = ErasureScope.of(session, tenant)
        who = checks.name(by)
        return connection_of(self.client).do_in_all(
            lambda cells: erase_everywhere(cells, scope, by=who, wait_s=wait_s), NewAct("erase", by=who)
        )

    @property
    def keys(self) -> ContentKeys:
        """The keys under which content in SQL is encrypted; SQL is enough."""
        from brainq.client.content_keys import ContentKeys

        if self._client is None:
            return ContentKeys([("", self._store)])
        return ContentKeys([(name, wiring.store) for name, wiring in cells_of(self._client).each()])

    def stops(self) -> tuple[Stop, ...]:
        """As `Client.stops`; SQL is enough."""
        return self._store.stops.standing() if self._client is None else self._client.stops()

    def close(self) -> None:
        """Close the connections to Redis and SQL."""
        if self._client is not None:
            self._client.close()
        else:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _result(handle: TurnHandle | None) -> TurnResult | None:
    if handle is None:
        return None
    try:
        return handle.result(timeout_s=0)
    except ResultTimeout:
        return None


def _messages(row: TurnRow, history: History) -> tuple[tuple[Message, ...], str]:
    """The turn's messages; and why there are none."""
    try:
        return history.transcript(row.session_id, row.turn_id, MAX_LISTED, 0), ""
    except ContentNotKept as refused:
        return (), str(refused)


def _retries(handle: TurnHandle | None) -> list[TurnEvent]:
    events = () if handle is None else handle.events_so_far()
    return [event for event in events if event.kind is EventKind.STEP_RETRIED]


def _holds(handle: TurnHandle | None, snapshot: TurnSnapshot | None) -> list[StandingHold]:
    """None of a turn that is over: there is nothing left to let go."""
    if handle is None or snapshot is None or snapshot.ending is not None:
        return []
    return list(handle.holds())
