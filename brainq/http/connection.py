"""One connection: a client that sends its request, or reads its answer, too slowly is cut off."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):
    """uvicorn's, with two more timers: for the head of a request, and for an answer that is not read."""

    slow_s = 20.0
    _head: asyncio.TimerHandle | None = None
    _unread: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        super().connection_made(transport)
        self._head = self.loop.call_later(self.slow_s, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._head = _cancelled(self._head)
        elif self._head is None and self.cycle.response_complete:
            # The next request of the connection begins: uvicorn's keep-alive timer has just ended.
            self._head = self.loop.call_later(self.slow_s, self.transport.abort)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread = self.loop.call_later(self.slow_s, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = _cancelled(self._unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._head, self._unread = _cancelled(self._head), _cancelled(self._unread)
        super().connection_lost(exc)


def _cancelled(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()


def connection_of(slow_s: float) -> type[Connection]:
    """The class of connections whose clients have `slow_s`."""
    return type("Connection", (Connection,), {"slow_s": slow_s})
