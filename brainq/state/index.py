"""Which turns the sweeper looks at next, and what its looks find."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Sequence
from functools import partial
from typing import cast

from brainq.contracts.fleet import DueTurns, SweepResult, TurnKey
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.typed_scripts import Scripts, TurnSweepLook

DAY_MS = 86_400_000
_RUN_ID = re.compile(r"run_id:(\w+)")


class RedisSweepIndex:
    """The sweeper's view of all turns. Fits `ports.redis_turns.SweepIndex`."""

    def __init__(
        self,
        scripts: Scripts,
        keys: Keys,
        outbox: Outbox,
        *,
        rering_s: float,
        failing_s: float,
        unserved_s: float,
        grace_s: float = 2.0,
        lease_s: float = 10.0,
    ) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        self._me = uuid.uuid4().hex
        self._rering_ms = int(rering_s * 1000)
        self._failing_ms = int(failing_s * 1000)
        self._unserved_ms = int(unserved_s * 1000)
        self._grace_ms = int(grace_s * 1000)
        self._longest_lease_ms = int(lease_s * 1000)

    def due(self, limit: int, hold_s: float) -> DueTurns:
        """Up to `most` turns that are due; no other sweeper gets them for `hold_s`."""
        reply = self._run.index_take(most=limit, hold_ms=int(hold_s * 1000))
        members = tuple(cast(TurnKey, tuple(member.split(" "))) for member in reply.members)
        return DueTurns(members, reply.stepped)

    def look(self, turns: Sequence[TurnKey]) -> list[SweepResult | Exception]:
        """Look at turns; in place of a look what kept it from being made. The script rings for lost bells again, and
        says when the turn is looked at next."""
        found = self._run.together([partial(self._look, turn=turn) for turn in turns])
        for session_id in {session_id for session_id, _ in turns}:
            self._outbox.flush(session_id)
        return list(found)

    def drop(self, turn: TurnKey) -> None:
        """A turn that Redis does not know is looked at no more."""
        self._run.index_drop(*turn)

    def standing(self, turns: Sequence[TurnKey]) -> list[str]:
        """Of each turn: `unknown` to Redis, `unlisted` (nobody would ever look at it), or `known`."""
        if not turns:
            return []
        reads = [("HGET", self._keys.turn(*turn), "awaits") for turn in turns]
        *awaits, scores = self._run.client.many([*reads, ("ZMSCORE", self._keys.index, *map(_index_member, turns))])
        return [_index_state(word, score) for word, score in zip(awaits, scores, strict=True)]

    def list_again(self, turns: Iterable[TurnKey]) -> None:
        """Have these looked at now."""
        self._run.index_hasten(after_ms=0, members=[_index_member(turn) for turn in turns])

    def take_comparing(self, for_s: float) -> bool:
        """One sweeper compares SQL with Redis: True for the one that does, as long as it asks within `for_s`."""
        key, for_ms = self._keys.sweeping, int(for_s * 1000)
        taken, holder = self._run.client.many([("SET", key, self._me, "NX", "PX", for_ms), ("GET", key)])
        if not taken and holder == self._me:
            self._run.client.pexpire(key, for_ms)
        return holder == self._me

    def epoch(self) -> str:
        """Another one when Redis may have lost data: it began anew, a replica took its place, or it was emptied."""
        key = self._keys.epoch
        _, _, kept, server = self._run.client.many(
            [("SET", key, uuid.uuid4().hex, "NX"), ("PEXPIRE", key, DAY_MS), ("GET", key), ("INFO", "server")]
        )
        found = _RUN_ID.search(str(server))
        return f"{kept} {found[1] if found else ''}"

    def _look(self, run: Scripts, turn: TurnKey) -> SweepResult:
        reply = run.turn_sweep(
            *turn,
            rering_ms=self._rering_ms,
            failing_ms=self._failing_ms,
            unserved_ms=self._unserved_ms,
            grace_ms=self._grace_ms,
            longest_lease_ms=self._longest_lease_ms,
        )
        if isinstance(reply, TurnSweepLook):
            return SweepResult(reply.fence, reply.actions, reply.lost)
        return SweepResult(actions=(("readmit",),) if reply == "GONE" else ())


def _index_member(turn: TurnKey) -> str:
    return f"{turn[0]} {turn[1]}"


def _index_state(awaits: str | None, score: object) -> str:
    if awaits is None:
        return "unknown"
    return "unlisted" if score is None and awaits != "nobody" else "known"


def overdue_s(client: Client, keys: Keys) -> float:
    """For how long the look that is due longest has been due; 0.0 when none is."""
    found = cast("list[tuple[str, float]]", client.zrange(keys.index, 0, 0, withscores=True))
    seconds, micros = client.time()
    return max(0.0, seconds + micros / 1e6 - found[0][1] / 1000) if found else 0.0
