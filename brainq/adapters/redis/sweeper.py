"""The sweeper's operations in Redis: the turns that are due for a check and its findings, the processes that have died,
and the number of turns that may be live.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from redis.exceptions import OutOfMemoryError, ResponseError

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.fleet import PRESENCE_KEPT_MS, RedisWorkers
from brainq.adapters.redis.keys import Keys
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.contracts.fleet import DueTurns, GoneProcess, SweepResult, TurnKey
from brainq.runtime.observe.logs import logger

log = logger("brainq.presence")

EPOCH_KEPT_MS = 86_400_000
LOOKS_APART_MS = 900  # A connection that was only reset is back within half a second.
TURNS_AT_ONCE = 500  # The number of turns whose leases are ended in one round trip.

CAPACITY_KEPT_MS = 86_400_000
# A cap is kept for this long after its last report, because sweepers of two deployments may report different caps in
# turn.
CAP_KEPT_MS = 60_000
ADMIT_BATCH = 200

_RUN_ID = re.compile(r"run_id:(\w+)")


def _due(stepped: int, members: Sequence[str]) -> DueTurns:
    return DueTurns(tuple(cast(TurnKey, tuple(member.split(" "))) for member in members), stepped)


def _kept(live: int, asked: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return live, asked


def _gone(found: Sequence[str] = ()) -> list[GoneProcess]:
    return [GoneProcess(name, int(at)) for name, at in zip(found[::2], found[1::2], strict=True)]


class RedisSweeperState:
    """The sweeper's view of all turns and of the fleet."""

    def __init__(
        self,
        scripts: Scripts,
        workers: RedisWorkers,
        *,
        rering_s: float,
        failing_s: float,
        unserved_s: float,
        grace_s: float = 2.0,
        lease_s: float = 10.0,
        beat_s: float = 3.0,
        cap_lifetime_ms: int = CAP_KEPT_MS,
    ) -> None:
        self._scripts = scripts
        self._keys = scripts.keys
        self._workers = workers
        self._me = uuid.uuid4().hex
        self._rering_ms = int(rering_s * 1000)
        self._failing_ms = int(failing_s * 1000)
        self._unserved_ms = int(unserved_s * 1000)
        self._grace_ms = int(grace_s * 1000)
        self._lease_ms = self._longest_lease_ms = int(lease_s * 1000)
        self._beat_ms = int(beat_s * 1000)
        # Every turn that a worker may have claimed is checked within this time.
        self._horizon_ms = int(max(lease_s, rering_s * 12) * 1000)
        self._cap_ms = cap_lifetime_ms

    @script("index_take", most=Parameter("limit"), hold_ms=Parameter("hold_s"), DUE=_due)
    def due(self, limit: int, hold_s: float) -> DueTurns:
        """Take up to `limit` turns that are due. Other sweepers do not get them for `hold_s` seconds."""
        ...

    def look(self, turns: Sequence[TurnKey]) -> list[SweepResult | Exception]:
        """Check turns, ring for their lost doorbells, and set the time of each turn's next check. The result of a check
        that failed is its exception."""
        return list(self._scripts.pipeline([self._sweep(*turn) for turn in turns])[0])

    @script_call("turn_sweep", LOOK=SweepResult, ENDED=SweepResult(), GONE=SweepResult(actions=(("readmit",),)))
    def _sweep(self, session_id: str, turn_id: str) -> ScriptCall[SweepResult]: ...

    def drop(self, turn: TurnKey) -> None:
        """Stop checking a turn that Redis does not have."""
        self._drop(*turn)

    @script("index_drop")
    def _drop(self, session_id: str, turn_id: str) -> None: ...

    def standing(self, turns: Sequence[TurnKey]) -> list[str]:
        """Return the standing of each turn.

        It is `unknown` to Redis, `unlisted` (no check would ever be due), `over` (its chain has ended), or `known`.
        """
        if not turns:
            return []
        reads = [("HGET", self._keys.turn(*turn), "awaits") for turn in turns]
        *awaits, scores = self._scripts.client.many([*reads, ("ZMSCORE", self._keys.index, *map(_index_member, turns))])
        return [_index_state(word, score) for word, score in zip(awaits, scores, strict=True)]

    def list_again(self, turns: Iterable[TurnKey]) -> None:
        """Make checks of these turns due now."""
        self._hasten([_index_member(turn) for turn in turns])

    @script("index_hasten", after_ms=0)
    def _hasten(self, members: Sequence[str]) -> None: ...

    def take_comparing(self, for_s: float) -> bool:
        """Reserve the comparison of SQL with Redis for this sweeper. Returns True for one sweeper, as long as it calls
        again within `for_s` seconds."""
        key, for_ms = self._keys.sweeping, int(for_s * 1000)
        taken, holder = self._scripts.client.many([("SET", key, self._me, "NX", "PX", for_ms), ("GET", key)])
        if not taken and holder == self._me:
            self._scripts.client.pexpire(key, for_ms)
        return holder == self._me

    def epoch(self) -> str:
        """Return a string that changes if Redis may have lost data: after a restart, a failover or a flush.

        Raises redis' ResponseError, and changes nothing, if this Redis is closed (server_move.py).
        """
        key = self._keys.epoch
        _, kept, server = self._scripts.client.many(
            [("SET", key, uuid.uuid4().hex, "NX"), ("GETEX", key, "PX", EPOCH_KEPT_MS), ("INFO", "server")]
        )
        found = _RUN_ID.search(str(server))
        return f"{kept} {found[1] if found else ''}"

    def lapse_gone(self) -> list[GoneProcess]:
        """End the leases of processes that have died, and remove them from the fleet. One sweeper a second does so. If
        Redis became unavailable in between, the next check does the rest."""
        ended: list[GoneProcess] = []
        for gone in self._find_gone():
            ended.append(replace(gone, leases=self._lapse(gone)))
            self._workers.withdraw_process(gone.process)
            self._forget(gone.process, gone.absent_at)
        return ended

    def lapse_others(self, process: str) -> int:
        """End the leases of every process but `process`, whose caller knows that no other process works.

        Returns their number.

        A Redis that was restarted together with the processes has not seen the earlier ones, so their leases would have
        to lapse.
        """
        names = cast("list[str]", self._scripts.client.hkeys(self._keys.presence))
        return sum(self.lapse(name) for name in names if name != process and " " not in name)  # the last look's time

    def lapse(self, process: str) -> int:
        """End the leases of a process that is known to be gone. Returns how many it held."""
        seconds, micros = self._scripts.client.time()
        lapsed = self._lapse(GoneProcess(process, seconds * 1000 + micros // 1000))
        self._workers.withdraw_process(process)
        self._scripts.client.hdel(self._keys.presence, process)
        return lapsed

    @script("presence_forget")
    def _forget(self, process: str, absent_at: int) -> None: ...

    def set_capacity(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int:
        live, asked = self._keep_capacity(size, share, own, caps)
        for session_id in asked:
            self._scripts.flush(session_id)
        return live

    @script("capacity_keep", most=ADMIT_BATCH, keep_ms=CAPACITY_KEPT_MS, KEPT=_kept)
    def _keep_capacity(
        self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]
    ) -> tuple[int, tuple[str, ...]]: ...

    @script("presence_look", apart_ms=LOOKS_APART_MS, forget_ms=PRESENCE_KEPT_MS, LOOKED=_gone, EARLY=_gone)
    def _find_gone(self) -> list[GoneProcess]: ...

    def _lapse(self, gone: GoneProcess) -> int:
        """End the leases of dead processes on all turns that may be worked on. Returns the number of leases."""
        lapsed, turns = 0, self._turns_at_work()
        for first in range(0, len(turns), TURNS_AT_ONCE):
            page = turns[first : first + TURNS_AT_ONCE]
            calls = [self._lapse_leases(*turn, gone.process, gone.absent_at) for turn in page]
            for reply in self._scripts.pipeline(calls)[0]:
                if isinstance(reply, OutOfMemoryError):
                    raise reply
                if isinstance(reply, ResponseError):
                    # A turn that cannot be read must not keep the others from continuing. Its own lease still protects
                    # it.
                    log.error("the leases of a dead process could not be ended", failure=reply, process=gone.process)
                else:
                    lapsed += reply
        return lapsed

    @script_call("leases_lapse", LAPSED=int, NONE=0)
    def _lapse_leases(self, session_id: str, turn_id: str, process: str, absent_at: int) -> ScriptCall[int]: ...

    def _turns_at_work(self) -> list[TurnKey]:
        """Return the turns that may be worked on. Parked turns, which may be many, have a much later check and are not
        among them."""
        client = self._scripts.client
        seconds, _ = client.time()
        found = client.zrangebyscore(self._keys.index, "-inf", seconds * 1000 + self._horizon_ms)
        return [cast(TurnKey, tuple(member.split(" "))) for member in cast("list[str]", found)]


def _index_member(turn: TurnKey) -> str:
    return f"{turn[0]} {turn[1]}"


def _index_state(awaits: str | None, score: object) -> str:
    if awaits is None:
        return "unknown"
    if awaits == "nobody":
        return "over"
    return "unlisted" if score is None else "known"


def overdue_s(client: Client, keys: Keys) -> float:
    """Return the seconds by which the most overdue check of a turn is late, or 0.0 if none is due."""
    found = cast("list[tuple[str, float]]", client.zrange(keys.index, 0, 0, withscores=True))
    seconds, micros = client.time()
    return max(0.0, seconds + micros / 1e6 - found[0][1] / 1000) if found else 0.0
