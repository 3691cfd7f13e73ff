"""What kombu's Redis transport does in each turn of the event loop, and only what has changed since the last."""

from __future__ import annotations

from typing import Any


def _nothing() -> None: ...


class Polling:
    """Mixed into kombu's Redis transports, before them."""

    _hub: Any = None

    def register_with_event_loop(self: Any, connection: Any, loop: Any) -> None:
        """kombu's own, but for its step before each poll: that one registers every socket again, each time."""
        others = set(loop.on_tick)
        super().register_with_event_loop(connection, loop)  # type: ignore[misc]
        self._hub = loop
        cycle, readers, on_readable = self.cycle, loop.readers, self.on_readable
        loop.on_tick.intersection_update(others)

        def on_poll_start() -> None:
            cycle.on_poll_start()
            for fd in cycle.fds:
                if fd not in readers:  # a socket that was closed is no longer among them
                    loop.add_reader(fd, on_readable, fd)

        loop.on_tick.add(on_poll_start)

    def wake(self) -> None:
        """Have the event loop look again whether it may take more; from any thread."""
        if self._hub is not None:
            self._hub.call_soon(_nothing)
