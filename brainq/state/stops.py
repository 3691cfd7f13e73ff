"""Operators' stops in Redis, where claims and submits meet them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from brainq.contracts.stop import Stop, stop_json
from brainq.state.typed_scripts import Scripts

STOPS_KEPT_MS = 86_400_000  # sweepers say again what SQL has
HASTENED_AT_ONCE = 1_000
HASTEN_APART_MS = 200  # so that looks at what goes on do not come all at once


class RedisStops:
    """The hash `stopped`. SQL's rows hold; this is what of them the scripts read. Fits `ports.people.StopSwitch`."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._client, self._keys = scripts.client, scripts.keys

    def put(self, standing: Sequence[Stop]) -> None:
        """From now on every claim and submit meets them."""
        calls = [
            self._scripts.stop_put(
                field=stop.field,
                mode=stop.mode,
                text=stop_json(stop),
                remaining_ms=None if stop.ends_in_s is None else max(1, int(stop.ends_in_s * 1000)),
                keep_ms=STOPS_KEPT_MS,
            )
            for stop in standing
        ]
        for reply in self._scripts.pipeline(calls)[0] if calls else ():
            if isinstance(reply, Exception):
                raise reply

    def drop(self, field: str) -> bool:
        """What waits for it goes on; False where it was not there."""
        return self._scripts.stop_drop(field=field).run() == "LIFTED"

    def fields(self) -> set[str]:
        """What scripts meet now."""
        return set(cast("list[str]", self._client.hkeys(self._keys.stopped)))

    def hasten(self) -> None:
        """Have every turn looked at: what waited for a stop that was lifted goes on."""
        members = cast("list[str]", self._client.zrange(self._keys.index, 0, -1))
        for page, first in enumerate(range(0, len(members), HASTENED_AT_ONCE)):
            some = members[first : first + HASTENED_AT_ONCE]
            self._scripts.index_hasten(after_ms=page * HASTEN_APART_MS, members=some).run()
