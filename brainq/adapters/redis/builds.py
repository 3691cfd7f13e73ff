"""Builds in Redis: the code and brains of workers, releases and ramps, and the build of each turn."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from brainq.adapters.redis.connection import Client, Command, as_mapping
from brainq.adapters.redis.keys import Keys
from brainq.contracts.build import BuildTurn, BuildWorker, Ramp, WorkerBuild
from brainq.contracts.fleet import TurnKey

SERVED_KEPT_MS = 86_400_000  # as lib/served.lua has it
SERVED_FOR_S = 10.0
KNOWN_MS = 90 * 86_400_000
_TURN_FIELDS = ("state", "pin", "pin_build", "builds", "format", "brain", "created_at")


@dataclass(frozen=True, slots=True)
class RedisBuilds:
    """The builds of workers, ramps and releases. Workers and operators write them; scripts read them to refuse
    turns."""

    client: Client
    keys: Keys

    def announce(
        self, process: str, build: WorkerBuild, pool: str, words: Iterable[str], for_s: float, lacks: str = ""
    ) -> None:
        """Record for `for_s` seconds that a worker of this build takes work, or what it lacks to do so.

        If there are several builds, scripts use this record to find the queues that the worker reads, which have the
        names `words`. The worker also reads the ramp.
        """
        report = BuildWorker.of(process, pool, build, lacks)
        commands: list[Command] = [("SET", self.keys.build(process), report.to_json(), "PX", int(for_s * 1000))]
        if not build.is_distinct:
            self.client.many(commands)
            return
        digests = [*(brain.digest for brain in build.brains), f"@{build.name}"]
        commands += [
            ("SET", self.keys.serves(word, digest), build.name, "PX", SERVED_KEPT_MS)
            for word in words
            for digest in digests
        ]
        known = [part for brain in build.brains for part in (f"{build.name} {brain.name}", brain.digest)]
        commands += [
            ("HSET", self.keys.builds, *known),
            ("PEXPIRE", self.keys.builds, KNOWN_MS),
            ("ZADD", self.keys.builds_seen, self._now_ms(), build.name),
            ("PEXPIRE", self.keys.builds_seen, KNOWN_MS),
            ("GETEX", self.keys.ramp, "PX", KNOWN_MS),  # The ramp lasts as long as there are workers that follow it.
        ]
        ramp = _read_ramp(self.client.many(commands)[-1])
        if ramp != build.ramp:
            build.ramp = ramp

    def forget_old(self) -> int:
        """Forget builds that no worker has reported for months, because each costs reads of its queues. Returns how
        many.

        A build that an older release reported without a time counts from now.
        """
        now_ms = self._now_ms()
        fields, seen, old = self.client.many(
            [
                ("HKEYS", self.keys.builds),
                ("ZRANGE", self.keys.builds_seen, 0, -1),
                ("ZRANGE", self.keys.builds_seen, "-inf", now_ms - KNOWN_MS, "BYSCORE"),
            ]
        )
        commands: list[Command] = [
            ("ZADD", self.keys.builds_seen, "NX", now_ms, name)
            for name in {field.partition(" ")[0] for field in fields} - {*seen}
        ]
        if old:
            gone = [field for field in fields if field.partition(" ")[0] in old]
            commands += [("HDEL", self.keys.builds, *gone)] if gone else []
            commands.append(("ZREM", self.keys.builds_seen, *old))
        if commands:
            self.client.many([*commands, ("PEXPIRE", self.keys.builds_seen, KNOWN_MS)])
        return len(old)

    def _now_ms(self) -> int:
        ((seconds, micros),) = self.client.many([("TIME",)])
        return int(seconds) * 1000 + int(micros) // 1000

    def withdraw(self, process: str) -> None:
        """Remove a worker that ends or takes no more work."""
        self.client.many([("DEL", self.keys.build(process))])

    def workers(self) -> tuple[BuildWorker, ...]:
        """Return the workers that take work and have a build, by name."""
        (names,) = self.client.many([("SMEMBERS", self.keys.workers)])
        if not names:
            return ()
        (words,) = self.client.many([("MGET", *(self.keys.build(name) for name in sorted(names)))])
        return tuple(BuildWorker.from_json(word) for word in words if word)

    def known(self) -> dict[str, dict[str, str]]:
        """Return the digests of all builds of the last months, by build and brain."""
        (found,) = self.client.many([("HGETALL", self.keys.builds)])
        by_build: dict[str, dict[str, str]] = {}
        for field, digest in as_mapping(found).items():
            build, _, brain = field.partition(" ")
            by_build.setdefault(build, {})[brain] = digest
        return by_build

    def ramp(self) -> Ramp | None:
        (found,) = self.client.many([("GET", self.keys.ramp)])
        return _read_ramp(found)

    def set_ramp(self, ramp: Ramp | None) -> None:
        """Set or remove the ramp. Workers read it within a few seconds."""
        if ramp is None:
            self.client.many([("DEL", self.keys.ramp)])
        else:
            value = json.dumps([ramp.to, ramp.other, ramp.share])
            self.client.many([("SET", self.keys.ramp, value, "PX", KNOWN_MS)])

    def release(self, digests: Mapping[str, str]) -> None:
        """Move turns that are pinned to a digest to another digest, as given by `digests`."""
        # Turns that were released to a digest before are released with it. Turns that are released back stay there.
        earlier = {digest: digests[to] for digest, to in self.released().items() if to in digests}
        moved = {digest: to for digest, to in {**earlier, **digests}.items() if digest != to}
        pairs = [part for pair in moved.items() for part in pair]
        self.client.many(
            [
                ("HDEL", self.keys.released, *digests.values()),
                ("HSET", self.keys.released, *pairs),
                ("PEXPIRE", self.keys.released, KNOWN_MS),
            ]
        )

    def released(self) -> dict[str, str]:
        (found,) = self.client.many([("HGETALL", self.keys.released)])
        return dict(as_mapping(found))

    def unserved_s(self, digests: Sequence[str], word: str = "turns") -> dict[str, float | None]:
        """Return the seconds since a worker with each digest last reported that it reads this queue. A digest has None
        if that is more than a day ago."""
        if not digests:
            return {}
        left = self.client.many([("PTTL", self.keys.serves(word, digest)) for digest in digests])
        return {
            digest: None if ms < 0 else max(0.0, (SERVED_KEPT_MS - ms) / 1000)
            for digest, ms in zip(digests, map(int, left), strict=True)
        }

    def unended(self, limit: int) -> tuple[BuildTurn, ...]:
        """Return at most `limit` turns whose finalizer has not ended."""
        (members,) = self.client.many([("ZRANGE", self.keys.index, 0, limit - 1)])
        keys = [(session, turn) for session, _, turn in (str(member).partition(" ") for member in members)]
        return self.turns(keys)

    def turns(self, turns: Sequence[TurnKey]) -> tuple[BuildTurn, ...]:
        """Return those of the given turns that are in Redis."""
        reads: list[Command] = [("HMGET", self.keys.turn(*turn), *_TURN_FIELDS) for turn in turns]
        found = self.client.many(reads) if reads else []
        return tuple(
            _read_turn(turn, dict(zip(_TURN_FIELDS, row, strict=True)))
            for turn, row in zip(turns, found, strict=True)
            if row[0]
        )


def _read_ramp(found: Any) -> Ramp | None:
    return Ramp(*json.loads(found)) if found else None


def _read_turn(turn: TurnKey, row: Mapping[str, str | None]) -> BuildTurn:
    last = (row["builds"] or "").rpartition(" ")[2]
    build, _, digest = last.partition("#")
    return BuildTurn(
        session_id=turn[0],
        turn_id=turn[1],
        state=row["state"] or "",
        brain=row["brain"] or "",
        build=build or row["pin_build"] or "",
        digest=row["pin"] or digest,
        is_pinned=row["pin"] is not None,
        format=int(row["format"] or 1),
    )
