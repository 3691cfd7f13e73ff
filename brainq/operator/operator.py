"""Operator: looks at turns, from SQL and, if it is there, Redis; and mends what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self, Unpack

from brainq.brain.brain import Brain
from brainq.brain.brains import BrainsArgument
from brainq.client import checks
from brainq.client.client import Client
from brainq.client.history import History, make_history
from brainq.client.internals import wiring_of
from brainq.client.lists import TurnList, checked_filter, find_turn, list_deliveries, make_turn_list
from brainq.client.options import TurnFilters
from brainq.client.timeline import read_timeline
from brainq.contracts.event import TurnTimeline
from brainq.contracts.history import ListedSession, ListedTurn, TurnCall
from brainq.contracts.ids import split_call_id
from brainq.contracts.people import Approval
from brainq.contracts.rows import TurnRow
from brainq.contracts.webhook import DeliveryRow
from brainq.devserver.redis_server import known_redis
from brainq.errors import CallNotFound, InvalidInput, SetupError, Unreachable
from brainq.finalize.rerun import Retried
from brainq.operator.facts import TurnFacts, collect_facts
from brainq.settings.deployment import Settings, settings_here
from brainq.state.connection import write_refusal
from brainq.store.store import Store


def open_client(settings: Settings, brain: BrainsArgument | None = None) -> Client:
    """A client whose Redis answers; without `brain` it has that of the settings. Raises SetupError."""
    client = Client(settings, brain, redis_url=known_redis(settings))
    try:
        client.ping()
    except Unreachable as away:
        client.close()
        if away.__cause__ is not None and write_refusal(away.__cause__) is not None:
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
        try:
            # Looking at turns asks nothing of a brain, so any will do.
            self._client = open_client(self.settings, Brain("operator", "offline:rules") if brain is None else brain)
        except SetupError as away:
            url = self.settings.sql_url.get_secret_value()
            sqlite = url.removeprefix("sqlite:///")
            if sqlite != url and not Path(sqlite).exists():  # opening it would make an empty one
                raise
            self.why_away = str(away)
            self._store = Store.open(url)
        else:
            self._store = wiring_of(self._client).store

    @property
    def client(self) -> Client:
        """For what is done to turns. Raises SetupError while Redis is away."""
        if self._client is None:
            raise SetupError(self.why_away)
        return self._client

    def find(self, sought: str) -> TurnRow:
        """As `Client.find`, and what SQL knows of it."""
        return find_turn(self._store, sought)

    def turns(
        self, *, limit: int = 50, after: str | None = None, **filters: Unpack[TurnFilters]
    ) -> tuple[ListedTurn, ...]:
        """As `Client.turns`; while Redis is away, what SQL knows."""
        return self._lists().turns(checked_filter(**filters), limit, after)

    def sessions(
        self,
        prefix: str = "",
        limit: int = 50,
        session_prefixes: Sequence[str] | None = None,
        *,
        after: str | None = None,
    ) -> tuple[ListedSession, ...]:
        """As `Client.sessions`; while Redis is away, what SQL knows."""
        return self._lists().sessions(prefix, limit, session_prefixes, after)

    def facts(self, sought: str) -> TurnFacts:
        """All that Redis and SQL know of a turn. Raises as `find`."""
        return collect_facts(
            self.find(sought), self.settings, self._store, self._client, self._history(), self.why_away
        )

    def timeline(self, sought: str) -> TurnTimeline:
        """As `TurnHandle.timeline`, of the turn that `find` finds; while Redis is away, what SQL knows."""
        row = self.find(sought)
        if self._client is None:
            return read_timeline(self._store, None, row, ())
        return self._client.handle(row.turn_id).timeline()

    def call(self, sought: str) -> TurnCall | None:
        """The call with this id; the part that names its turn is read as `find` does. None where the
        name is a turn's, or no call's. Raises TurnNotFound, CallNotFound, InvalidInput."""
        if self._store.turns.find(sought, limit=1):
            return None
        try:
            turn, call_id = split_call_id(sought)
        except InvalidInput:
            return None
        row = self.find(turn)
        for call in self._history().calls(row.session_id, row.turn_id, checks.MAX_LISTED, None):
            if call.call_id == call_id:
                return call
        raise CallNotFound(f"turn {row.turn_id!r} has no call {call_id}; `brainq show {row.turn_id}` has them all")

    def _lists(self) -> TurnList:
        return TurnList(self._store, None) if self._client is None else make_turn_list(wiring_of(self._client))

    def _history(self) -> History:
        return History(self._store, None) if self._client is None else make_history(wiring_of(self._client))

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
        return wiring_of(self.client).step_rerunner.steps_to_run(turn_id, step or None)

    def retry(self, turn_id: str, step: str) -> Retried:
        """Run one of them here. What it writes to SQL is written once, whichever process tries.

        Raises TurnNotFound, and InvalidInput when the turn's content is nowhere any more.
        """
        return wiring_of(self.client).step_rerunner.run(self.find(turn_id).session_id, turn_id, step)

    def deliveries(
        self, state: str | None = None, limit: int = 50, session_prefixes: Sequence[str] | None = None
    ) -> list[DeliveryRow]:
        """What webhooks were, or are to be, sent, the newest first.

        state      pending, done, dead; None: any
        session_prefixes   only of sessions that begin with one of these prefixes, such as ("acme:",)

        Raises InvalidInput.
        """
        return list_deliveries(self._store, state, limit, session_prefixes)

    def send_again(self, delivery: int | None) -> int:
        """A dead delivery, or (None) every one, is due at once, as if it were new; how many were dead."""
        if delivery is None:
            return self._store.deliveries.revive_all()
        return int(self._store.deliveries.revive(delivery))

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
