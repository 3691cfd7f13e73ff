"""A turn as Redis knows it at one moment, for `show`, `list` and handles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from brainq.contracts.snapshot import TurnSnapshot
from brainq.contracts.status import Awaits, Ending, StopReason, TurnState
from brainq.state.budgets import budget_now_ms, budget_snapshot
from brainq.state.calls import RedisCalls
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.turn_view import read_newest_text


class RedisSnapshots:
    """Whole-turn snapshots, read in one round trip plus the trace."""

    def __init__(self, client: Client, keys: Keys, calls: RedisCalls) -> None:
        self._client = client
        self._keys = keys
        self._calls = calls

    def of(self, session_id: str, turn_id: str) -> TurnSnapshot | None:
        """The turn's snapshot, or None when Redis does not know it."""
        key = self._keys.turn(session_id, turn_id)
        pipe = self._client.pipeline(transaction=False)
        pipe.time()
        pipe.hgetall(key)
        pipe.hgetall(key + ":budget")
        pipe.lpos(self._keys.of_session(session_id, "waiting"), turn_id)
        clock, turn, budget, ahead = pipe.execute()
        if not turn or not budget:
            return None
        now_ms = clock[0] * 1000 + clock[1] // 1000
        return TurnSnapshot(
            turn_id=turn_id,
            session_id=session_id,
            state=TurnState(turn["state"]),
            awaits=Awaits(turn["awaits"]),
            step=int(turn["step"]),
            attempt=int(turn["attempt"]),
            fence=int(turn["fence"]),
            owner=turn.get("owner", ""),
            lease_remaining_ms=max(0, int(turn.get("lease_until") or 0) - now_ms) if turn.get("owner") else 0,
            ending=Ending(turn["ending"]) if "ending" in turn else None,
            stop_reason=StopReason(turn["stop_reason"]) if "stop_reason" in turn else None,
            cancel_requested=turn.get("cancel") == "1",
            budget=budget_snapshot(budget, budget_now_ms(now_ms, turn["state"], turn.get("parked_at"))),
            kind=turn.get("kind", "chat"),
            parked_ms=int(turn.get("parked_ms") or 0)
            + (now_ms - int(turn["parked_at"]) if turn["state"] == "parked" else 0),
            trace=self._calls.trace(session_id, turn_id),
            finalizer_step=turn.get("fin_step", ""),
            finalizer_tries=int(turn.get("fin_tries") or 0),
            text=self._text(session_id, turn_id, turn),
            waiting_behind=0 if ahead is None else ahead + 1,
            created_at_ms=int(turn["created_at"]),
            now_ms=now_ms,
        )

    def in_brief(self, session_id: str, turn_id: str) -> tuple[str, str] | None:
        """Its state and its text alone; None when Redis does not know it."""
        turn = cast("dict[str, str]", self._client.hgetall(self._keys.turn(session_id, turn_id)))
        return (turn["state"], self._text(session_id, turn_id, turn)) if turn else None

    def _text(self, session_id: str, turn_id: str, turn: Mapping[str, str]) -> str:
        if "ending" in turn or not turn.get("begun"):
            return turn.get("text", "")
        return read_newest_text(self._client, self._keys, session_id, turn_id, turn.get("isolated") == "1")
