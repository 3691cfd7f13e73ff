"""Pages of turns, sessions and deliveries, and the search for a turn by the beginning of its id."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from itertools import islice
from typing import Any, TypeVar, get_args

from brainq.adapters.redis.snapshots import LiveTurn, RedisLiveTurns
from brainq.adapters.sql.list_places import Figure
from brainq.adapters.sql.repositories.turn_lists import ListRow
from brainq.adapters.sql.store import Store
from brainq.app.wiring import Wiring
from brainq.app.wiring.cells import turn_not_found
from brainq.client import checks
from brainq.contracts.evaluation import ALL_STRATEGIES, Strategy
from brainq.contracts.file import File
from brainq.contracts.history import LIST_STATES, SORTS, ListedSession, ListedTurn, Sort, TurnFilter, metadata_pairs
from brainq.contracts.ids import MAX_ID_LENGTH, check_id, check_turn_id
from brainq.contracts.rows import TurnRow
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnRequest
from brainq.contracts.webhook import DeliveryRow, DeliveryState
from brainq.engine.turn.explain import explain
from brainq.errors import AttachmentNotFound, InvalidInput

T = TypeVar("T")
W = TypeVar("W", bound=StrEnum)
MAX_SEARCH_CHARS = 200
MAX_FILTER_VALUES = 20  # The maximum number of metadata values, and of tags, in one filter.
REDIS_BATCH = 200  # The number of turns to read from Redis at once when only Redis can tell which of them match.


def get_turn(store: Store, turn_id: str) -> TurnRow:
    """Return a turn's row. Raises TurnNotFound."""
    row = store.turns.get(turn_id)
    if row is None:
        raise turn_not_found(turn_id)
    return row


def get_request(store: Store, turn_id: str) -> TurnRequest:
    """Return a turn's request. Raises TurnNotFound."""
    request = store.turns.request(turn_id)
    if request is None:
        raise turn_not_found(turn_id)
    return request


def get_file(store: Store, turn_id: str, sha256: str) -> File:
    """Return a file of a turn. Raises AttachmentNotFound."""
    content = store.blobs.of_turn(turn_id, sha256)
    if content is None:
        raise AttachmentNotFound(
            f"turn {turn_id!r} has no file {sha256!r}, or the file was removed; the turn's transcript lists its files"
        )
    return content


@dataclass(frozen=True, slots=True)
class TurnList:
    """A reader of pages. Every turn comes from SQL, and the state of live turns from Redis.

    live_turns: None while Redis is unreachable. The lists then show what SQL has.
    """

    store: Store
    live_turns: RedisLiveTurns | None

    def turns(self, filters: TurnFilter, limit: int, before: str | None) -> tuple[ListedTurn, ...]:
        """See `Client.turns`."""
        checks.limit(limit)
        return self.turns_behind(filters, limit, self._row_of(before, filters.sessions))

    def turns_behind(self, filters: TurnFilter, limit: int, place: int | Figure | None) -> tuple[ListedTurn, ...]:
        """Return the page that follows a place in the order of the list."""
        if isinstance(place, Figure) or filters.needs_content or filters.sort != "newest":
            return tuple(islice(self._ordered(filters, place, limit), limit))
        # Read live turns first: a turn that ends in between is then found twice rather than missed.
        live = list(self._unended(filters, place, limit)) if filters.has_live else []
        ended = self.store.turn_lists.ended(filters, place, limit) if filters.has_ended else []
        listed = {row.row: turn for row, turn in live} | {row.row: row.turn for row in ended}
        return tuple(listed[row] for row in sorted(listed, reverse=True)[:limit])

    def sessions(
        self, prefix: str, limit: int, sessions: Sequence[str] | None, before: str | None
    ) -> tuple[ListedSession, ...]:
        """See `Client.sessions`."""
        theirs = checks.session_prefixes(sessions)
        return self.sessions_behind(prefix, limit, theirs, self._row_of(before, theirs))

    def sessions_behind(
        self, prefix: str, limit: int, theirs: Sequence[str] | None, place: int | None
    ) -> tuple[ListedSession, ...]:
        """Return the sessions whose newest turn comes after this row in the order of the list."""
        begins = check_id("prefix", prefix) if prefix else ""
        rows = self.store.turn_lists.sessions(theirs, begins, place, checks.limit(limit))
        turns = [turn for _, turn in self._with_state([row for row, _ in rows])]
        ids = [row.turn.session_id for row, _ in rows]
        states = self.live_turns.read_sessions(ids) if self.live_turns is not None else [None] * len(ids)
        return tuple(
            ListedSession(
                session_id=turn.session_id,
                last_turn=turn,
                turns=number,
                live=None if now is None else now.live,
                waiting=0 if now is None else now.waiting,
                is_paused=now is not None and now.is_paused,
                flags=0 if now is None else now.flags,
            )
            for turn, (_, number), now in zip(turns, rows, states, strict=True)
        )

    def _row_of(self, before: str | None, sessions: Sequence[str] | None) -> int | None:
        if before is None:
            return None
        row = self.store.turn_lists.row_number(check_turn_id("after", before), sessions)
        if row is None:
            raise no_such_turn(before)
        return row

    def _ordered(self, filters: TurnFilter, place: int | Figure | None, limit: int) -> Iterator[ListedTurn]:
        """Return turns in an order other than newest first, or the turns that a search finds."""
        at_once = max(limit, REDIS_BATCH) if filters.needs_content or filters.needs_redis else limit
        while True:
            rows = self.store.turn_lists.ordered(filters, place, at_once)
            wanted = rows
            if filters.needs_content:
                matching = self.store.turn_lists.rows_with_text([row.row for row in rows], filters)
                wanted = [row for row in rows if row.row in matching]
            for row, turn in self._with_state(wanted):
                if row.turn.ended_at is not None or filters.fits(turn):
                    yield turn
            if len(rows) < at_once:
                return
            place = rows[-1].row

    def _unended(self, filters: TurnFilter, place: int | None, limit: int) -> Iterator[tuple[ListRow, ListedTurn]]:
        """Return the newest live turns whose state in Redis matches the filters."""
        left, at_once = limit, max(limit, REDIS_BATCH) if filters.needs_redis else limit
        while left:
            rows = self.store.turn_lists.unended(filters, place, at_once)
            for row, turn in self._with_state(rows):
                if left and filters.fits(turn):
                    left -= 1
                    yield row, turn
            if len(rows) < at_once:
                return
            place = rows[-1].row

    def _with_state(self, rows: Sequence[ListRow]) -> list[tuple[ListRow, ListedTurn]]:
        """Return the turns, with the current state of those that are live."""
        unended = [row.turn for row in rows if row.turn.ended_at is None]
        snapshots: dict[str, LiveTurn | None] = {}
        if self.live_turns is not None:
            states = self.live_turns.read_turns([(turn.session_id, turn.turn_id) for turn in unended])
            snapshots = {turn.turn_id: now for turn, now in zip(unended, states, strict=True)}
        why = "accepted; " + ("Redis does not know it" if self.live_turns is not None else "Redis is away")
        listed: list[tuple[ListRow, ListedTurn]] = []
        for row in rows:
            turn, now = row.turn, snapshots.get(row.turn.turn_id)
            if turn.ended_at is None:
                turn = turn.model_copy(update={"note": why}) if now is None else _live_turn(turn, now)
            listed.append((row, turn))
        return listed


def no_such_turn(after: str) -> InvalidInput:
    return InvalidInput("after", f"turn {after!r} does not exist or was deleted; begin with the first page")


def make_turn_list(wiring: Wiring) -> TurnList:
    return TurnList(wiring.store, None if wiring.redis_away else wiring.state.live_turns)


def checked_filter(
    session: str | None = None,
    state: str | None = None,
    session_prefixes: Sequence[str] | None = None,
    *,
    brain: str | None = None,
    ending: str | None = None,
    stop_reason: str | None = None,
    failing: bool = False,
    unknown: bool = False,
    min_cost_usd: float | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    text: str = "",
    strategy: str | None = None,
    search: str = "",
    sort: Sort = "newest",
    metadata: Mapping[str, Any] | None = None,
    prompt_tags: Sequence[str] = (),
) -> TurnFilter:
    """Return the filters as one value. Raises InvalidInput naming the field."""
    if state is not None and state not in LIST_STATES:
        hint = f"; it is an ending, so use ending={state!r}" if state in tuple(Ending) else ""
        raise InvalidInput("state", f"{state!r} is not one of {', '.join(LIST_STATES)}{hint}")
    if sort not in SORTS:
        raise InvalidInput("sort", f"{sort!r} is not one of {', '.join(SORTS)}")
    if min_cost_usd is not None and not (math.isfinite(min_cost_usd) and min_cost_usd >= 0):
        raise InvalidInput("min_cost_usd", f"{min_cost_usd!r} must be a number of dollars, 0 or more")
    return TurnFilter(
        session=None if session is None else check_id("session", session),
        brain=None if brain is None else check_id("brain", brain),
        sessions=checks.session_prefixes(session_prefixes),
        state=state,
        ending=_enum_value("ending", ending, Ending),
        stop_reason=_enum_value("stop_reason", stop_reason, StopReason),
        failing=failing,
        unknown=unknown,
        min_cost_usd=min_cost_usd,
        since=checked_instant("since", since),
        until=checked_instant("until", until),
        text=checks.text("text", text, MAX_ID_LENGTH),
        strategy=_strategy(strategy),
        metadata=_metadata_filter(metadata or {}),
        prompt_tags=_tags(prompt_tags),
        search=checks.text("search", search, MAX_SEARCH_CHARS).strip(),
        sort=sort,
    )


def read_metadata_pairs(field: str, pairs: Sequence[str]) -> dict[str, str]:
    """Read `["customer=42"]` as metadata to filter by. Raises InvalidInput for a text that is not `name=value`."""
    metadata: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidInput(field, f"{pair!r} is not name=value, such as customer=42")
        if name in metadata:
            raise InvalidInput(field, f"{name!r} is given twice; a turn has only one value for it")
        metadata[name] = value
    return metadata


def _metadata_filter(metadata: object) -> tuple[str, ...]:
    if not isinstance(metadata, Mapping):
        raise InvalidInput("metadata", "must be a mapping of names to values, such as {'customer': 42}")
    pairs = tuple(checks.text("metadata", pair, MAX_SEARCH_CHARS) for pair in metadata_pairs(metadata))
    if len(pairs) > MAX_FILTER_VALUES:
        raise InvalidInput("metadata", f"has {len(pairs)} values; use at most {MAX_FILTER_VALUES}")
    return pairs


def _tags(tags: Sequence[str]) -> tuple[str, ...]:
    if isinstance(tags, str) or len(tags) > MAX_FILTER_VALUES:
        raise InvalidInput("prompt_tags", f"must be a list of at most {MAX_FILTER_VALUES} tags")
    return tuple(checks.text("prompt_tags", tag, MAX_SEARCH_CHARS) for tag in tags)


def _strategy(value: str | None) -> Strategy | None:
    if value is None:
        return None
    for strategy in ALL_STRATEGIES:
        if strategy == value:
            return strategy
    raise InvalidInput("strategy", f"{value!r} is not one of {', '.join(ALL_STRATEGIES)}")


def checked_instant(field: str, value: datetime | None) -> datetime | None:
    """Return the instant in UTC. Raises InvalidInput naming `field` if it has no time zone."""
    if value is None:
        return None
    if value.tzinfo is None:
        raise InvalidInput(field, f"{value.isoformat()} has no time zone; write 2026-05-01T12:00:00Z")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise InvalidInput(field, f"{value.isoformat()} is beyond the years 1 to 9999 in UTC") from None


def _enum_value(field: str, value: str | None, kind: type[W]) -> W | None:
    if value is None:
        return None
    try:
        return kind(value)
    except ValueError:
        raise InvalidInput(field, f"{value!r} is not one of {', '.join(kind)}") from None


def _live_turn(turn: ListedTurn, now: LiveTurn) -> ListedTurn:
    snapshot = now.snapshot
    live = {
        "state": snapshot.state.value,
        "ending": snapshot.ending if snapshot.state.is_final else None,
        "stop_reason": snapshot.stop_reason,
        "note": explain(snapshot),
        "awaits": snapshot.awaits,
        "steps": snapshot.budget.steps_used,
        "calls": snapshot.budget.tool_calls_used,
        "failed_calls": now.failed_calls,
        "unknown_calls": now.unknown_calls,
        "tokens": snapshot.budget.tokens_used,
        "cost_usd": snapshot.budget.cost_usd if snapshot.budget.cost_known or not snapshot.budget.tokens_used else None,
    }
    return turn.model_copy(update=live)


def list_deliveries(
    store: Store, state: str | None, limit: int, sessions: Sequence[str] | None, before: int | None = None
) -> list[DeliveryRow]:
    """See `Client.deliveries`. Needs SQL only, so it works while Redis is away."""
    if state not in (None, *get_args(DeliveryState)):
        raise InvalidInput("state", f"{state!r} is not one of {', '.join(get_args(DeliveryState))}")
    return store.deliveries.list(state, checks.limit(limit), before, sessions=checks.session_prefixes(sessions))
