"""What the sweeper asks of Redis: which turns it looks at next and what its looks find, which processes are gone, and
how many turns may be live.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal, cast

from redis.exceptions import OutOfMemoryError, ResponseError

from brainq.contracts.fleet import DueTurns, GoneProcess, SweepResult, TurnKey
from brainq.observe.logs import logger
from brainq.state.connection import Client
from brainq.state.fleet import PRESENCE_KEPT_MS, RedisWorkers
from brainq.state.keys import Keys
from brainq.state.typed_scripts import LeasesLapseLapsed, PresenceLookLooked, Scripts, TurnSweepLook

log = logger("brainq.presence")

EPOCH_KEPT_MS = 86_400_000
LOOKS_APART_MS = 900  # a connection that was only reset is back within half a second
TURNS_AT_ONCE = 500  # of which a gone process' leases are ended in one trip

CAPACITY_KEPT_MS = 86_400_000
CAP_KEPT_MS = 60_000  # after its last report: sweepers of two deployments report different caps in turn
ADMIT_BATCH = 200

_RUN_ID = re.compile(r"run_id:(\w+)")


class RedisSweeperState:
    """The sweeper's view of all turns, and of the fleet. Fits `ports.redis_turns.SweeperState`."""

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
        self._lease_ms, self._beat_ms = int(lease_s * 1000), int(beat_s * 1000)
        # Every turn that a worker may have taken up is looked at within this.
        self._horizon_ms = int(max(lease_s, rering_s * 12) * 1000)
        self._cap_lifetime_ms = cap_lifetime_ms

    def due(self, limit: int, hold_s: float) -> DueTurns:
        """Up to `most` turns that are due; no other sweeper gets them for `hold_s`."""
        reply = self._scripts.index_take(most=limit, hold_ms=int(hold_s * 1000)).run()
        members = tuple(cast(TurnKey, tuple(member.split(" "))) for member in reply.members)
        return DueTurns(members, reply.stepped)

    def look(self, turns: Sequence[TurnKey]) -> list[SweepResult | Exception]:
        """Look at turns; in place of a look what kept it from being made. The script rings for lost bells again, and
        says when the turn is looked at next."""
        sweeps = [
            self._scripts.turn_sweep(
                *turn,
                rering_ms=self._rering_ms,
                failing_ms=self._failing_ms,
                unserved_ms=self._unserved_ms,
                grace_ms=self._grace_ms,
                longest_lease_ms=self._lease_ms,
            )
            for turn in turns
        ]
        replies, _ = self._scripts.pipeline(sweeps)
        return [reply if isinstance(reply, ResponseError) else _sweep_result(reply) for reply in replies]

    def drop(self, turn: TurnKey) -> None:
        """A turn that Redis does not know is looked at no more."""
        self._scripts.index_drop(*turn).run()

    def standing(self, turns: Sequence[TurnKey]) -> list[str]:
        """Of each turn: `unknown` to Redis, `unlisted` (nobody would ever look at it), or `known`."""
        if not turns:
            return []
        reads = [("HGET", self._keys.turn(*turn), "awaits") for turn in turns]
        *awaits, scores = self._scripts.client.many([*reads, ("ZMSCORE", self._keys.index, *map(_index_member, turns))])
        return [_index_state(word, score) for word, score in zip(awaits, scores, strict=True)]

    def list_again(self, turns: Iterable[TurnKey]) -> None:
        """Have these looked at now."""
        self._scripts.index_hasten(after_ms=0, members=[_index_member(turn) for turn in turns]).run()

    def take_comparing(self, for_s: float) -> bool:
        """One sweeper compares SQL with Redis: True for the one that does, as long as it asks within `for_s`."""
        key, for_ms = self._keys.sweeping, int(for_s * 1000)
        taken, holder = self._scripts.client.many([("SET", key, self._me, "NX", "PX", for_ms), ("GET", key)])
        if not taken and holder == self._me:
            self._scripts.client.pexpire(key, for_ms)
        return holder == self._me

    def epoch(self) -> str:
        """Another one when Redis may have lost data: it began anew, a replica took its place, or it was emptied."""
        key = self._keys.epoch
        _, _, kept, server = self._scripts.client.many(
            [("SET", key, uuid.uuid4().hex, "NX"), ("PEXPIRE", key, EPOCH_KEPT_MS), ("GET", key), ("INFO", "server")]
        )
        found = _RUN_ID.search(str(server))
        return f"{kept} {found[1] if found else ''}"

    def lapse_gone(self) -> list[GoneProcess]:
        """End the leases of processes that are gone, and take them off the fleet.

        One sweeper a second finds any. What is not finished, because Redis went away, is found by the next look.
        """
        ended: list[GoneProcess] = []
        for gone in self._find_gone():
            ended.append(replace(gone, leases=self._lapse(gone)))
            self._workers.withdraw_process(gone.process)
            self._scripts.presence_forget(process=gone.process, absent_at=gone.absent_at).run()
        return ended

    def set_capacity(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int:
        reply = self._scripts.capacity_keep(
            size=size,
            share=share,
            own=json.dumps(dict(own)),
            caps=json.dumps(dict(caps)),
            cap_ms=self._cap_lifetime_ms,
            most=ADMIT_BATCH,
            keep_ms=CAPACITY_KEPT_MS,
        ).run()
        for session_id in reply.asked:
            self._scripts.flush(session_id)
        return reply.live

    def _find_gone(self) -> list[GoneProcess]:
        reply = self._scripts.presence_look(
            channels=self._keys.alive, apart_ms=LOOKS_APART_MS, forget_ms=PRESENCE_KEPT_MS
        ).run()
        if not isinstance(reply, PresenceLookLooked):
            return []
        return [GoneProcess(name, int(at)) for name, at in zip(reply.gone[::2], reply.gone[1::2], strict=True)]

    def _lapse(self, gone: GoneProcess) -> int:
        """End its leases of all turns that may be worked on. Returns how many it held."""
        lapsed, turns = 0, self._turns_at_work()
        for first in range(0, len(turns), TURNS_AT_ONCE):
            page = turns[first : first + TURNS_AT_ONCE]
            calls = [
                self._scripts.leases_lapse(
                    *turn,
                    process=gone.process,
                    absent_at=gone.absent_at,
                    lease_ms=self._lease_ms,
                    beat_ms=self._beat_ms,
                )
                for turn in page
            ]
            for reply in self._scripts.pipeline(calls)[0]:
                if isinstance(reply, OutOfMemoryError):
                    raise reply
                if isinstance(reply, ResponseError):
                    # One turn that cannot be read must not keep others from going on. Its own lease says the rest.
                    log.error("leases of a process that is gone not ended", failure=reply, process=gone.process)
                lapsed += reply.leases if isinstance(reply, LeasesLapseLapsed) else 0
        return lapsed

    def _turns_at_work(self) -> list[TurnKey]:
        """Parked turns, of which there may be many, are looked at much later, and are not among them."""
        client = self._scripts.client
        seconds, _ = client.time()
        found = client.zrangebyscore(self._keys.index, "-inf", seconds * 1000 + self._horizon_ms)
        return [cast(TurnKey, tuple(member.split(" "))) for member in cast("list[str]", found)]


def _sweep_result(reply: TurnSweepLook | Literal["ENDED", "GONE"]) -> SweepResult:
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
