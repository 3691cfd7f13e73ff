"""Operators' stops in Redis, which claims and submits check."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, cast

from brainq.adapters.redis.script_methods import script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.contracts.stop import Stop, stop_json

STOPS_KEPT_MS = 86_400_000  # Sweepers write again what SQL has.
HASTENED_AT_ONCE = 1_000
HASTEN_APART_MS = 200  # This spreads the checks of turns that continue.
NONE_KNOWN_S = 10.0  # New stops are published; this covers a message that was lost.


class RedisStops:
    """The hash `stopped`. SQL's rows are authoritative; this is the part that scripts read.

    listen   starts listening for new stops
    """

    def __init__(self, scripts: Scripts, listen: Callable[[], None]) -> None:
        self._scripts = scripts
        self._client, self._keys = scripts.client, scripts.keys
        self._listen = listen
        self._heard = 0
        self._none_until = 0.0

    def receive_put(self, _: str) -> None:
        """Handle the message that a process has stopped something."""
        self.catch_up()

    def catch_up(self) -> None:
        """Discard what is known, because stops may have been missed while this process was not subscribed."""
        self._heard += 1
        self._none_until = 0.0

    def in_force(self) -> tuple[Stop, ...]:
        """Return the active stops. Without any, this costs one command in ten seconds, because new stops are
        published."""
        if time.monotonic() < self._none_until:
            return ()
        self._listen()
        heard = self._heard
        texts, (seconds, _) = cast(
            "tuple[list[str], tuple[str, str]]", self._client.many([("HVALS", self._keys.stopped), ("TIME",)])
        )
        now_ms = int(seconds) * 1000
        rows = [text.split(" ", 2) for text in texts]
        found = tuple(Stop.from_stored(body) for _, ends, body in rows if ends == "0" or now_ms < int(ends))
        if not found and heard == self._heard:
            self._none_until = time.monotonic() + NONE_KNOWN_S
        return found

    def put(self, standing: Sequence[Stop]) -> None:
        """Put these stops in force: every claim and submit checks them from now on."""
        calls = [
            self._put(
                stop.field,
                stop.mode,
                stop_json(stop),
                None if stop.ends_in_s is None else max(1, int(stop.ends_in_s * 1000)),
            )
            for stop in standing
        ]
        for reply in self._scripts.pipeline(calls)[0] if calls else ():
            if isinstance(reply, Exception):
                raise reply
        if standing:
            self._client.publish(self._keys.stopped, "put")

    @script_call("stop_put", keep_ms=STOPS_KEPT_MS)
    def _put(self, field: str, mode: str, text: str, remaining_ms: int | None) -> ScriptCall[Literal["STOPPED"]]: ...

    @script("stop_drop", LIFTED=True, ABSENT=False)
    def drop(self, field: str) -> bool:
        """Lift a stop: what waits for it continues. Returns False if it was not in force."""
        ...

    def fields(self) -> set[str]:
        """Return the fields that scripts check."""
        return set(cast("list[str]", self._client.hkeys(self._keys.stopped)))

    def hasten(self) -> None:
        """Have every turn checked, so that turns which waited for a lifted stop continue."""
        members = cast("list[str]", self._client.zrange(self._keys.index, 0, -1))
        for page, first in enumerate(range(0, len(members), HASTENED_AT_ONCE)):
            some = members[first : first + HASTENED_AT_ONCE]
            self._hasten(page * HASTEN_APART_MS, some)

    @script("index_hasten")
    def _hasten(self, after_ms: int, members: Sequence[str]) -> None: ...
