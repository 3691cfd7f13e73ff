"""Which workers are alive: each says so every few seconds, and what it said lasts a little longer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.fleet import FleetWorker
from brainq.state.connection import Client
from brainq.state.keys import Keys

DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class RedisWorkers:
    """A word a worker, which Redis lets go of by itself, and the set of those that gave one."""

    client: Client
    keys: Keys

    def announce(self, process: str, worker: FleetWorker, for_s: float) -> None:
        """The worker is alive, and is taken to be so for `for_s`. `process` is no other worker's."""
        self.client.many(
            [
                ("SET", self.keys.worker(process), worker.model_dump_json(), "PX", int(for_s * 1000)),
                ("SADD", self.keys.workers, process),
                ("PEXPIRE", self.keys.workers, DAY_MS),
            ]
        )

    def withdraw(self, process: str) -> None:
        """The worker ends."""
        self.client.many([("DEL", self.keys.worker(process)), ("SREM", self.keys.workers, process)])

    def forget_dead(self) -> None:
        """Names of workers that said nothing for long go out of the set."""
        names = self._names()
        dead = [name for name, word in zip(names, self._words(names), strict=True) if word is None]
        if dead:
            self.client.many([("SREM", self.keys.workers, *dead)])

    def alive(self) -> tuple[FleetWorker, ...]:
        """By name."""
        words = self._words(self._names())
        return tuple(FleetWorker.model_validate_json(word) for word in words if word is not None)

    def _names(self) -> list[str]:
        (names,) = self.client.many([("SMEMBERS", self.keys.workers)])
        return sorted(names)

    def _words(self, names: Sequence[str]) -> list[str | None]:
        if not names:
            return []
        (words,) = self.client.many([("MGET", *(self.keys.worker(name) for name in names))])
        return list(words)
