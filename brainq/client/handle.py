"""TurnHandle: one submitted turn, from any process."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from brainq.contracts.event import TurnEvent
from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.turn import TurnResult
from brainq.errors import ResultTimeout, TurnNotFound, TurnRejected

if TYPE_CHECKING:
    from brainq.client.client import Client

POLL_S = 2.0


class TurnHandle:
    """Follows one turn. Make it with `client.submit(...)` or `client.handle(turn_id)`."""

    def __init__(self, client: Client, session_id: str, turn_id: str, *, created: bool = False) -> None:
        self._client = client
        self.session_id = session_id
        self.turn_id = turn_id
        self.created = created
        """False when this request_key had been submitted before: the handle is the first turn's."""

    def __repr__(self) -> str:
        return f"TurnHandle(session_id={self.session_id!r}, turn_id={self.turn_id!r})"

    def result(self, timeout_s: float | None = None) -> TurnResult:
        """Wait for the turn's result, for every ending.

        Raises ResultTimeout after `timeout_s` seconds (None: no limit), TurnRejected for a refused turn, and
        TurnNotFound when neither Redis nor SQL knows it.
        """
        until = None if timeout_s is None else time.monotonic() + timeout_s
        after = 0
        while True:
            found = self._known_result()
            if found is not None:
                return found
            left = POLL_S if until is None else min(POLL_S, until - time.monotonic())
            if left <= 0:
                raise ResultTimeout(
                    f"turn {self.turn_id!r} has no result after {timeout_s:g} s; it goes on, ask again later"
                )
            batch = self._client.wiring.events.read(self.session_id, self.turn_id, after, left)
            if batch:
                after = batch[-1].seq

    def events(self, after: int = 0, timeout_s: float | None = None) -> Iterator[TurnEvent]:
        """Events numbered above `after`, as they come, to the final one.

        Ends without the final event when the turn's events have expired from Redis. Raises ResultTimeout when
        nothing comes for `timeout_s` seconds, TurnNotFound when nobody knows the turn.
        """
        quiet_since = time.monotonic()
        while True:
            batch, over = self.next_events(after)
            yield from batch
            if over:
                return
            if batch:
                after, quiet_since = batch[-1].seq, time.monotonic()
            elif timeout_s is not None and time.monotonic() - quiet_since >= timeout_s:
                raise ResultTimeout(f"turn {self.turn_id!r}: no event for {timeout_s:g} s")

    def next_events(self, after: int) -> tuple[list[TurnEvent], bool]:
        """The events above `after` that there are, waiting up to 2 s for the first; and whether that is all."""
        batch = self._client.wiring.events.read(self.session_id, self.turn_id, after, POLL_S)
        if batch:
            return batch, batch[-1].is_final
        known = self._client.wiring.events.known(self.session_id, self.turn_id)
        return [], not known and self._ended_in_sql()

    def snapshot(self) -> TurnSnapshot | None:
        """The turn as Redis knows it now; None once it has expired there."""
        return self._client.wiring.snapshots.of(self.session_id, self.turn_id)

    def cancel(self, reason: str = "") -> str:
        """Ask for the turn to be cancelled; outlives this process and every worker.

        Returns `cancelled` (it had not begun), `requested`, or `ended` (nothing to cancel).
        """
        return self._client.cancel(self.session_id, self.turn_id, reason)

    def _known_result(self) -> TurnResult | None:
        body = self._client.wiring.events.result(self.session_id, self.turn_id)
        if body is not None:
            return TurnResult.model_validate_json(body)
        if self._client.wiring.events.known(self.session_id, self.turn_id):
            return None
        return self._client.wiring.store.turns.result(self.turn_id) if self._ended_in_sql() else None

    def _ended_in_sql(self) -> bool:
        row = self._client.wiring.store.turns.get(self.turn_id)
        if row is None:
            raise TurnNotFound(f"turn {self.turn_id!r} is known neither to Redis nor to SQL")
        if row.state == "rejected":
            raise TurnRejected(row.reject_reason or "rejected")
        return row.ended_at is not None
