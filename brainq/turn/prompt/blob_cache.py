"""BlobCache: the bytes of attachments for model calls, read from SQL once for the steps of a turn."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping

from brainq.contracts.message import Message
from brainq.ports.sql import Blobs

MAX_CACHED_BYTES = 64_000_000
CACHED_S = 120.0  # what SQL has let go (pruned, redacted) is not shown much longer


class BlobCache:
    """The least recently used leave first. Thread-safe; one a process."""

    def __init__(
        self, blobs: Blobs, most_bytes: int = MAX_CACHED_BYTES, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._blobs = blobs
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        # By session, too: that one session has a file lets no other see it.
        self._kept: OrderedDict[tuple[str, str], tuple[float, bytes]] = OrderedDict()
        self._size = 0

    def blobs_for(self, session_id: str, messages: Iterable[Message]) -> Mapping[str, bytes]:
        """The bytes of the messages' attachments, by sha256; what is gone is left out. Raises what SQL raises."""
        wanted = {one.sha256 for message in messages for one in message.attachments}
        if not wanted:
            return {}
        found = self._cached(session_id, wanted)
        if missing := wanted - found.keys():
            read = self._blobs.load(session_id, missing)
            self._keep(session_id, read)
            found |= read
        return found

    def _cached(self, session_id: str, hashes: Iterable[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        with self._lock:
            for sha256 in hashes:
                kept = self._kept.get((session_id, sha256))
                if kept is not None and self._clock() < kept[0]:
                    self._kept.move_to_end((session_id, sha256))
                    found[sha256] = kept[1]
        return found

    def _keep(self, session_id: str, read: Mapping[str, bytes]) -> None:
        until = self._clock() + CACHED_S
        with self._lock:
            for sha256, data in read.items():
                before = self._kept.pop((session_id, sha256), None)
                self._kept[session_id, sha256] = (until, data)
                self._size += len(data) - (0 if before is None else len(before[1]))
            while self._size > self._most_bytes:
                _, (_, data) = self._kept.popitem(last=False)
                self._size -= len(data)
