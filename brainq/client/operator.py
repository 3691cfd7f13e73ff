"""Operator: reads any turn, even while Redis is unreachable, and retries abandoned work."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from brainq.adapters.redis.connection import redis_refusal
from brainq.app.devserver.redis_server import known_redis
from brainq.app.wiring import Wiring
from brainq.client import checks
from brainq.client.checks import MAX_LISTED
from brainq.client.client import Client
from brainq.client.connection import cells_of, connection_of, wiring_of
from brainq.client.erase import erase_everywhere
from brainq.client.handle import TurnHandle, explain_next
from brainq.client.history import History, make_history
from brainq.client.paging import find_turn
from brainq.client.retries import retry_step, steps_to_run
from brainq.client.timeline import read_timeline
from brainq.client.turn_facts import CallFacts, TurnFacts, call_of_intents
from brainq.contracts.act import NewAct
from brainq.contracts.erasure import Erasure, ErasureScope
from brainq.contracts.event import EventKind, TurnTimeline
from brainq.contracts.ids import split_call_id
from brainq.contracts.message import Message
from brainq.contracts.rows import TurnRow
from brainq.contracts.turn import TurnResult
from brainq.contracts.view import TurnSnapshot
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import BrainsArgument
from brainq.engine.finalize.rerun import Retried
from brainq.errors import CallNotFound, ContentNotKept, InvalidInput, ResultTimeout, SetupError, Unreachable
from brainq.fleet.snapshot import read_redis_fleet
from brainq.runtime.settings.deployment import Settings, settings_here
from brainq.runtime.settings.extensions import load_extension

if TYPE_CHECKING:
    from brainq.contrib.encryption.content_keys import ContentKeys

P = ParamSpec("P")
R = TypeVar("R")


def open_client(settings: Settings, brain: BrainsArgument | None = None) -> Client:
    """Open a client whose Redis answers, by default with the brain of the settings. Raises SetupError."""
    client = Client(settings, brain, redis_url=known_redis(settings))
    try:
        cells_of(client).ping()  # The check fails for a Redis that accepts no writes, although it can still be read.
    except Unreachable as away:
        client.close()
        if away.__cause__ is not None and redis_refusal(away.__cause__) is not None:
            raise SetupError(str(away)) from away
        raise SetupError(f"{away}; start it, or correct BRAINQ_REDIS_URL; see `brainq doctor`") from away
    except BaseException:
        client.close()
        raise
    return client


def _as_client(verb: Callable[Concatenate[Client, P], R]) -> Callable[Concatenate[Any, P], R]:
    """Make a verb of the operator's client a verb of the operator."""

    def of_operator(operator: Operator, *args: P.args, **named: P.kwargs) -> R:
        return verb(operator._client, *args, **named)  # pyright: ignore[reportPrivateUsage]

    of_operator.__doc__ = f"See `Client.{verb.__name__}`. While Redis is away, it returns what SQL knows."
    return of_operator


class Operator:
    """A client that needs neither the brain's code nor Redis. While Redis is unreachable, it reads only SQL.

        with Operator() as operator:
            for turn in operator.turns(ending="failed"):
                print(turn.turn_id, turn.note)

    brain: needed only by `retry`, which runs steps in this process.

    Raises SetupError if there is neither Redis nor a database.
    """

    def __init__(self, settings: Settings | None = None, brain: BrainsArgument | None = None) -> None:
        self.settings = settings or settings_here()
        self.why_away = ""
        """The reason why Redis cannot be reached, or "" if it can."""
        # Any brain will do, because reading turns does not use it.
        brain = Brain("operator", "offline:rules") if brain is None else brain
        if len(self.settings.all_cells()) > 1:  # With several cells, lists name a cell that is unreachable.
            self._client = Client(self.settings, brain)
            return
        try:
            self._client = open_client(self.settings, brain)
        except SetupError as away:
            url = self.settings.sql_address
            sqlite = url.removeprefix("sqlite:///")
            if sqlite != url and not Path(sqlite).exists():  # Opening a missing file would create an empty database.
                raise
            self._client = Client(self.settings, brain)
            self.why_away = wiring_of(self._client).redis_away = str(away)

    @property
    def client(self) -> Client:
        """The client, for verbs that change turns. Raises SetupError while Redis is unreachable."""
        if self.why_away:
            raise SetupError(self.why_away)
        return self._client

    turns = _as_client(Client.turns)
    sessions = _as_client(Client.sessions)
    approvals = _as_client(Client.approvals)
    deliveries = _as_client(Client.deliveries)
    stops = _as_client(Client.stops)

    def find(self, sought: str) -> TurnRow:
        """Find a turn as `Client.find` does, and return its data in SQL."""
        return find_turn(cells_of(self._client).find_rows(sought), sought)

    def facts(self, sought: str) -> TurnFacts:
        """Return all that Redis and SQL know of a turn. Raises the errors of `find`."""
        row = self.find(sought)
        wiring = cells_of(self._client).of_session(row.session_id)
        handle = None if self.why_away or row.state == "rejected" else self._client.handle(row.turn_id)
        return _read_facts(wiring, row, handle)

    def timeline(self, sought: str) -> TurnTimeline:
        """Return the timeline of the turn that `find` finds, from SQL while Redis is unreachable. See
        `TurnHandle.timeline`."""
        row = self.find(sought)
        if self.why_away:
            return read_timeline(wiring_of(self._client).store, None, row, ())
        return self._client.handle(row.turn_id).timeline()

    def call(self, sought: str) -> CallFacts | None:
        """Return what is known of the call with this id. The part of the id that names the turn is resolved as in
        `find`. Returns None if the id is a turn's, or not a call's. Raises TurnNotFound, CallNotFound, InvalidInput."""
        if cells_of(self._client).find_rows(sought):
            return None
        try:
            turn, call_id = split_call_id(sought)
        except InvalidInput:
            return None
        row = self.find(turn)
        wiring = cells_of(self._client).of_session(row.session_id)
        intents = [one for one in wiring.store.calls.of_turn(row.turn_id) if one.call_id == call_id]
        for call in make_history(wiring).calls(row.session_id, row.turn_id, MAX_LISTED, None):
            if call.call_id == call_id:
                return CallFacts(call, intents)
        if intents:
            return CallFacts(call_of_intents(intents), intents)
        raise CallNotFound(f"turn {row.turn_id!r} has no call {call_id}; `brainq show {row.turn_id}` lists its calls")

    def given_up(self, turn_id: str, step: str = "") -> list[str]:
        """Return what `retry` may run: every dead finalizer step and judgement of the turn, or the ones that `step`
        names.

        step: a step; `judge:NAME`; `judges`.

        Raises InvalidInput for a step that is unknown or needs no retry.
        """
        return steps_to_run(connection_of(self.client), turn_id, step)

    def retry(self, turn_id: str, step: str) -> Retried:
        """Run a step in this process. Its SQL rows are written once, whichever process tries.

        Raises TurnNotFound, and InvalidInput if the turn's content no longer exists.
        """
        return retry_step(connection_of(self.client), self.find(turn_id).session_id, turn_id, step)

    def send_again(self, delivery: int | str | None) -> int:
        """Make a dead delivery due at once, as if it were new. None selects every dead delivery. Returns the number of
        deliveries."""
        if delivery is not None:
            return int(self._client.send_again(delivery))
        return connection_of(self._client).do_in_all(
            lambda cells: sum(cells.ask(lambda wiring: wiring.store.deliveries.revive_all()).values),
            NewAct("send again"),
        )

    def erase(
        self, *, session: str | None = None, tenant: str | None = None, by: str = "", wait_s: float = 60.0
    ) -> Erasure:
        """Erase a session, or a tenant such as `acme:`, and all its data permanently, then check that nothing is left.

        Live turns are cancelled first. SQL rows, Redis keys, files, memories, schedules and deliveries are deleted;
        tokens stay.

        by: the person who requested the erasure, for the receipt.
        wait_s: the seconds that live turns have to end.

        Raises InvalidInput; ResultTimeout if turns do not end, before anything is deleted; SetupError while Redis is
        unreachable.
        """
        scope, who = ErasureScope.of(session, tenant), checks.name(by)
        return connection_of(self.client).do_in_all(
            lambda cells: erase_everywhere(cells, scope, by=who, wait_s=wait_s), NewAct("erase", by=who)
        )

    @property
    def keys(self) -> ContentKeys:
        """The keys under which content in SQL is encrypted. They do not need Redis."""
        make_keys: type[ContentKeys] = load_extension("brainq.encryption", "keys")
        return make_keys([(name, wiring.store) for name, wiring in cells_of(self._client).each()])

    def close(self) -> None:
        """Close the connections to Redis and SQL."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _read_facts(wiring: Wiring, row: TurnRow, handle: TurnHandle | None) -> TurnFacts:
    """Read the facts of a turn. Without a handle, they come from SQL only."""
    store, history, turn_id = wiring.store, make_history(wiring), row.turn_id
    snapshot = None if handle is None else handle.snapshot()
    result = _result(handle) or store.turns.result(turn_id)
    messages, no_messages = _messages(row, history)
    events = () if handle is None else handle.events_so_far()
    is_over = snapshot is None or snapshot.ending is not None
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
        holds=[] if handle is None or is_over else list(handle.holds()),
        inputs=[
            (sent, sent.receipt if handle is None else handle.receipt(sent.client_message_id))
            for sent in store.inputs.of_turn(turn_id)
        ],
        messages=messages,
        no_messages=no_messages,
        retries=[event for event in events if event.kind is EventKind.STEP_RETRIED],
        next=_next_sentence(wiring, row, snapshot),
        troubles=() if handle is None or row.ended_at is not None else read_redis_fleet(wiring).troubles,
        decision=store.decisions.get(turn_id) if handle is None else handle.decision(),
    )


def _next_sentence(wiring: Wiring, row: TurnRow, snapshot: TurnSnapshot | None) -> str:
    if not wiring.redis_away or row.state == "rejected":
        workers = None if wiring.redis_away else wiring.state.workers
        return explain_next(row, snapshot, wiring.settings, workers)
    if row.ended_at is not None:
        return f"ended as {row.state}; nothing more happens. Redis is unreachable, so only the data in SQL is shown"
    return f"not ended according to SQL; its current state is in Redis, which is unreachable: {wiring.redis_away}"


def _result(handle: TurnHandle | None) -> TurnResult | None:
    try:
        return None if handle is None else handle.result(timeout_s=0)
    except ResultTimeout:
        return None


def _messages(row: TurnRow, history: History) -> tuple[tuple[Message, ...], str]:
    """Return the turn's messages, and the reason if there are none."""
    try:
        return history.transcript(row.session_id, row.turn_id, MAX_LISTED, 0), ""
    except ContentNotKept as refused:
        return (), str(refused)
