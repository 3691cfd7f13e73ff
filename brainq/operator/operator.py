"""Operator: looks at turns, from SQL and, if it is there, Redis; and mends what was given up."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

from brainq.brain import Brain
from brainq.brains import GivenBrains
from brainq.client import checks
from brainq.client.client import Client
from brainq.client.deliveries import list_deliveries
from brainq.client.finding import find_turn
from brainq.client.history import History, history_of
from brainq.client.inner import wiring_of
from brainq.client.options import TurnFilters
from brainq.client.timelines import timeline_of
from brainq.client.turn_list import TurnList, checked_filter, turn_list_of
from brainq.contracts.approval import Approval
from brainq.contracts.history import TurnCall
from brainq.contracts.ids import split_call_id
from brainq.contracts.listing import ListedSession, ListedTurn
from brainq.contracts.rows import TurnRow
from brainq.contracts.session_prefix import check_prefixes
from brainq.contracts.timeline import TurnTimeline
from brainq.contracts.webhook import DeliveryRow
from brainq.errors import CallNotFound, InvalidInput, SetupError
from brainq.finalize.retry import Retried
from brainq.operator.facts import TurnFacts, collect_facts
from brainq.operator.reach import reached, require_database
from brainq.settings import Settings, settings_here
from brainq.store.store import Store


class Operator:
    """Looks at any turn: the brain's code need not be here, and SQL alone is enough.

        with Operator() as operator:
            for turn in operator.turns(ending="failed"):
                print(turn.turn_id, turn.note)

    brain   needed by `retry` alone, which runs its steps here

    Raises SetupError when there is no Redis and no database either.
    """

    def __init__(self, settings: Settings | None = None, brain: GivenBrains | None = None) -> None:
        self.settings = settings or settings_here()
        self.why_away = ""
        """Why Redis cannot be asked; "" while it can."""
        self._client: Client | None = None
        try:
            # Looking at turns asks nothing of a brain, so any will do.
            self._client = reached(
                self.settings, Brain("operator", "offline:rules") if brain is None else brain
            )
        except SetupError as away:
            require_database(self.settings, away)
            self.why_away = str(away)
        if self._client is None:
            self._store = Store.open(self.settings.sql_url.get_secret_value())
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
        self, *, limit: int = 50, after: str | None = None, **asked: Unpack[TurnFilters]
    ) -> tuple[ListedTurn, ...]:
        """As `Client.turns`; while Redis is away, what SQL knows."""
        return self._lists().turns(checked_filter(**asked), limit, after)

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
            return timeline_of(self._store, None, row, ())
        return self._client.handle(row.turn_id).timeline()

    def call(self, sought: str) -> TurnCall | None:
        """The call that is named so, by its id; what stands for its turn there is read as `find` does. None where the
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
        raise CallNotFound(
            f"turn {row.turn_id!r} has no call {call_id}; `brainq show {row.turn_id}` has them all"
        )

    def _lists(self) -> TurnList:
        return TurnList(self._store, None) if self._client is None else turn_list_of(wiring_of(self._client))

    def _history(self) -> History:
        return History(self._store, None) if self._client is None else history_of(wiring_of(self._client))

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
        prefixes = None if session_prefixes is None else check_prefixes("session_prefixes", session_prefixes)
        place = None
        if after is not None:
            place = self._store.approvals.place(*split_call_id(checks.approval(after)), prefixes)
            if place is None:
                raise InvalidInput("after", f"there is no approval {after!r}; begin with the first page")
        rows = self._store.approvals.list(
            session, checks.approval_state(state), checks.limit(limit), place, prefixes
        )
        return tuple(row.approval for row in rows)

    def given_up(self, turn_id: str, step: str = "") -> list[str]:
        """What `retry` may run: every dead finalizer step and judgement of the turn, or what `step` names.

        step   a step; `judge:NAME`; `judges`

        Raises InvalidInput for what is not known, or needs no retry.
        """
        return wiring_of(self.client).retrier.wanted(turn_id, step or None)

    def retry(self, turn_id: str, step: str) -> Retried:
        """Run one of them here. What it writes to SQL is written once, whoever else tries.

        Raises TurnNotFound, and InvalidInput when the turn's content is nowhere any more.
        """
        return wiring_of(self.client).retrier.run(self.find(turn_id).session_id, turn_id, step)

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

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
