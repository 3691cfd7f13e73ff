"""Which streams are open, and for whom: they are counted, and told when the gateway stops."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import TracebackType

from brainq.http.problems import Refused


class Place:
    """One open stream, or one request that waits for a result. `stopping` is set when it has to end."""

    def __init__(self, streams: Streams, caller: str) -> None:
        self._streams = streams
        self.caller = caller
        self.stopping = asyncio.Event()

    def leave(self) -> None:
        """Make room. Doing it again changes nothing."""
        self._streams.left(self)

    def __enter__(self) -> Place:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave()


class Streams:
    """At most `most` at once, and `most_a_caller` of one caller."""

    def __init__(self, most: int, most_a_caller: int) -> None:
        self._most = most
        self._most_a_caller = most_a_caller
        self._open: set[Place] = set()
        self._by_caller: Counter[str] = Counter()
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._open)

    def enter(self, caller: str) -> Place:
        """Take a place. Raises Refused where there is none."""
        self.require_running()
        if self._by_caller[caller] >= self._most_a_caller:
            raise Refused(
                "too-many-streams",
                f"{self._most_a_caller} streams and waits are open for this caller; close one, then ask again",
            )
        if len(self._open) >= self._most:
            raise Refused("streams-full", "ask again later, or ask another gateway")
        place = Place(self, caller)
        self._open.add(place)
        self._by_caller[caller] += 1
        return place

    def require_running(self) -> None:
        """Raise Refused when the gateway stops."""
        if self._is_stopping:
            raise Refused("stopping", "the gateway stops; ask again, another one answers")

    def left(self, place: Place) -> None:
        if place not in self._open:
            return
        self._open.remove(place)
        self._by_caller[place.caller] -= 1
        if not self._by_caller[place.caller]:
            del self._by_caller[place.caller]

    def stop(self) -> None:
        """Tell each that it has to end, and let none begin."""
        self._is_stopping = True
        for place in self._open:
            place.stopping.set()
