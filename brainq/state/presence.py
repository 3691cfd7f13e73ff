"""Which processes are gone: Redis closes the sockets of one that was killed, and its leases end at once.

A process listens on a channel of its own, on the connection that hears cancels. Redis knows 4 to 17 ms after a SIGKILL
that nobody listens there any more (measured, 10 of 10). A frozen process keeps its connection, and a host that vanished
keeps its sockets: of these the lease alone says.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import cast

from brainq.contracts.fleet import GoneProcess, TurnKey
from brainq.observe.logs import logger
from brainq.state.connection import Client
from brainq.state.fleet import RedisWorkers
from brainq.state.keys import Keys
from brainq.state.stops import RedisStopSignals
from brainq.state.typed_scripts import LeasesLapseLapsed, PresenceLookLooked, Scripts

log = logger("brainq.presence")

LOOKS_APART_MS = 900  # a connection that was only reset is back within half a second
FORGET_MS = 600_000  # what Redis has not seen since it began
TURNS_AT_ONCE = 500


class RedisPresence:
    """Has this process watched, and finds others that are gone. Fits `ports.redis_turns.Presence`."""

    def __init__(
        self,
        scripts: Scripts,
        keys: Keys,
        stops: RedisStopSignals,
        workers: RedisWorkers,
        process: str,
        *,
        lease_s: float,
        beat_s: float,
        rering_s: float,
    ) -> None:
        self._run = scripts
        self._keys = keys
        self._stops = stops
        self._workers = workers
        self._process = process
        self._lease_ms, self._beat_ms = int(lease_s * 1000), int(beat_s * 1000)
        # The sweeper looks within this at every turn that a worker may have taken up.
        self._horizon_ms = int(max(lease_s, rering_s * 12) * 1000)
        self._is_listening = False
        self._is_deaf = False

    def begin(self) -> None:
        """Listen, so that this process is watched. Before anything else listens; again changes nothing."""
        if not self._is_listening:
            self._is_listening = True
            self._stops.hear(self._keys.alive + self._process, _ignore, self.join)
            self._stops.listen()

    def join(self) -> None:
        """Have this process watched, if Redis hears it listen. Repeated for as long as the process lives."""
        if not self._is_listening:
            return  # a worker that never came so far as to begin holds nothing
        word = self._run.presence_join(channels=self._keys.alive, process=self._process, keep_ms=FORGET_MS)
        if word == "DEAF" and not self._is_deaf:
            log.info("Redis does not hear this process listen: if it dies its lease says so", process=self._process)
        self._is_deaf = word == "DEAF"

    def lapse_gone(self) -> list[GoneProcess]:
        """End the leases of processes that are gone, and take them off the fleet.

        One sweeper a second finds any. What is not finished, because Redis went away, is found by the next look.
        """
        ended: list[GoneProcess] = []
        for gone in self._look():
            ended.append(replace(gone, leases=self._lapse(gone)))
            self._workers.withdraw_process(gone.process)
            self._run.presence_forget(process=gone.process, absent_at=gone.absent_at)
        return ended

    def _look(self) -> list[GoneProcess]:
        reply = self._run.presence_look(channels=self._keys.alive, apart_ms=LOOKS_APART_MS, forget_ms=FORGET_MS)
        if not isinstance(reply, PresenceLookLooked):
            return []
        return [GoneProcess(name, int(at)) for name, at in zip(reply.gone[::2], reply.gone[1::2], strict=True)]

    def _lapse(self, gone: GoneProcess) -> int:
        """End its leases of all turns that may be worked on. Returns how many it held."""
        lapsed, turns = 0, self._turns_at_work()
        for first in range(0, len(turns), TURNS_AT_ONCE):
            page = turns[first : first + TURNS_AT_ONCE]
            for reply in self._run.together([partial(self._lapse_turn, gone=gone, turn=turn) for turn in page]):
                if isinstance(reply, Exception):
                    raise reply
                lapsed += reply
        return lapsed

    def _turns_at_work(self) -> list[TurnKey]:
        """Parked turns, of which there may be many, are looked at much later, and are not among them."""
        client = self._run.client
        seconds, _ = client.time()
        found = client.zrangebyscore(self._keys.index, "-inf", seconds * 1000 + self._horizon_ms)
        return [cast(TurnKey, tuple(member.split(" "))) for member in cast("list[str]", found)]

    def _lapse_turn(self, run: Scripts, gone: GoneProcess, turn: TurnKey) -> int:
        reply = run.leases_lapse(
            *turn, process=gone.process, absent_at=gone.absent_at, lease_ms=self._lease_ms, beat_ms=self._beat_ms
        )
        return reply.leases if isinstance(reply, LeasesLapseLapsed) else 0


def unwatched(client: Client, keys: Keys) -> list[str]:
    """The workers that say they are alive, and whose death Redis would not notice."""
    workers, watched = client.many([("SMEMBERS", keys.workers), ("HKEYS", keys.presence)])
    words = client.many([("MGET", *(keys.worker(name) for name in sorted(workers)))])[0] if workers else []
    alive = [name for name, word in zip(sorted(workers), words, strict=True) if word is not None]
    return [name for name in alive if name.partition("@")[2] not in watched]


def _ignore(_: str) -> None:
    """Nothing is ever published there."""
