"""The readers of many turns' events: one an event loop, made when something is first followed on it."""

from __future__ import annotations

import asyncio

from brainq.state.keys import Keys
from brainq.state.stream_reader import StreamReader


class StreamReaders:
    """A program has one loop as a rule, and so one reader; one that calls `asyncio.run` again gets another."""

    def __init__(self, redis_url: str, prefix: str) -> None:
        self._url = redis_url
        self._keys = Keys(prefix)
        self._readers: dict[asyncio.AbstractEventLoop, StreamReader] = {}

    @property
    def reader(self) -> StreamReader:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._readers.get(loop)
        if found is None:
            # A loop that was closed has cancelled its reader's task, which hung up.
            for closed in [known for known in list(self._readers) if known.is_closed()]:
                self._readers.pop(closed, None)
            found = self._readers[loop] = StreamReader(self._url, self._keys)
        return found

    async def close(self) -> None:
        """End the running loop's reader and its followers."""
        reader = self._readers.get(asyncio.get_running_loop())
        if reader is not None:
            await reader.close()
