"""A TCP proxy that breaks connections on order, and counts what it broke."""

from __future__ import annotations

import selectors
import socket
import struct
import threading
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

_RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close() sends RST, and throws away what was not sent


class Proxy:
    """A proxy that listens on a free loopback port, and forwards to `upstream`: (host, port), or a unix socket's
    path."""

    def __init__(self, upstream: tuple[str, int] | Path) -> None:
        self._upstream = upstream
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.passed = 0  # bytes
        self.connected = 0  # connections, ever
        self.resets = 0  # connections that were reset
        self.silenced = 0  # connections that went silent
        self.refused = 0  # connections that were not taken
        self.swallowed = 0  # replies that were thrown away
        self.struck = 0  # requests that were cut off
        self.delayed = 0  # pieces that passed late
        self._delay_s = 0.0
        self._late: deque[tuple[float, socket.socket, bytes]] = deque()
        self._refuses = self._frozen = False
        self._to_swallow = 0
        self._strikes_at: tuple[bytes, bool] | None = None
        self._unanswered: set[socket.socket] = set()
        self._upstreams: set[socket.socket] = set()
        self._silent: set[socket.socket] = set()
        self._mute = False
        self._peers: dict[socket.socket, socket.socket] = {}
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="proxy", daemon=True)
        self._thread.start()

    def go_silent(self) -> None:
        """Forward nothing on existing connections from now on. New ones are accepted, and silent, too."""
        self._mute = True
        self._silent.update(self._peers)
        self.silenced += len(self._peers) // 2

    def heal(self) -> None:
        """Forward on new connections again. Silent ones stay half open for good."""
        self._mute = False

    def reset(self) -> None:
        """Reset the existing connections. New ones are accepted."""
        self.resets += len(self._peers) // 2
        for sock in list(self._peers):
            _reset(sock)

    def go_away(self) -> None:
        """Reset the existing connections and accept no new ones, until `come_back`."""
        self._refuses = True
        self.reset()

    def come_back(self) -> None:
        self._refuses = False

    def freeze(self) -> None:
        """Forward nothing until `thaw`, which forwards everything."""
        self._frozen = True

    def thaw(self) -> None:
        self._frozen = False

    def delay(self, seconds: float) -> None:
        """Forward everything with this delay, each way. 0 ends it. Data in flight keeps its order."""
        self._delay_s = seconds

    def swallow_replies(self, count: int) -> None:
        """Drop the next `count` replies and reset their connections. The requests were executed."""
        self._to_swallow = count

    def strike(self, marker: bytes, *, is_done: bool) -> None:
        """Reset the connection of the next request that contains `marker`, before it is forwarded, or (`is_done`) in
        place of its reply."""
        self._strikes_at = marker, is_done

    def close(self) -> None:
        self._closed.set()
        self._thread.join(10)
        for sock in [*self._peers, self._listener]:
            sock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._closed.is_set():
                if self._frozen:
                    self._closed.wait(0.02)
                    continue
                self._pass_late()
                for key, _ in selector.select(0.005 if self._late else 0.05):
                    if self._frozen:
                        break  # what has come since `freeze` waits, too
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if sock is self._listener:
                        self._accept(selector)
                    else:
                        self._pass(sock, selector)

    def _accept(self, selector: selectors.BaseSelector) -> None:
        near, _ = self._listener.accept()
        far = None if self._refuses else self._connect()
        if far is None:
            self.refused += 1
            _reset(near)
            near.close()
            return
        self.connected += 1
        self._peers |= {near: far, far: near}
        self._upstreams.add(far)
        if self._mute:
            self._silent |= {near, far}
        for sock in (near, far):
            selector.register(sock, selectors.EVENT_READ)

    def _connect(self) -> socket.socket | None:
        """Return a connection, or None if the upstream cannot be reached."""
        place = self._upstream
        far = socket.socket(socket.AF_UNIX if isinstance(place, Path) else socket.AF_INET)
        try:
            far.connect(str(place) if isinstance(place, Path) else place)
        except OSError:
            far.close()
            return None
        return far

    def _pass(self, sock: socket.socket, selector: selectors.BaseSelector) -> None:
        try:
            data = sock.recv(65536)
        except OSError:
            data = b""
        peer = self._peers.get(sock)
        if sock in self._silent:
            if not data:
                selector.unregister(sock)
            return
        if data and sock in self._unanswered:
            data = b""
        if data and self._strikes_at is not None and sock not in self._upstreams and self._strikes_at[0] in data:
            is_done, self._strikes_at = self._strikes_at[1], None
            self.struck += 1
            if not is_done:
                data = b""
            elif peer is not None:
                self._unanswered.add(peer)
        if data and sock in self._upstreams and self._to_swallow:
            self._to_swallow -= 1
            self.swallowed += 1
            data = b""
        if data and peer is not None:
            self.passed += len(data)
            if self._delay_s or self._late:
                self.delayed += 1
                self._late.append((time.monotonic() + self._delay_s, peer, data))
            else:
                _send(peer, data)
            return
        for end in (sock, peer):
            if end is not None and self._peers.pop(end, None) is not None:
                selector.unregister(end)
                self._upstreams.discard(end)
                self._unanswered.discard(end)
                _reset(end)
                end.close()

    def _pass_late(self) -> None:
        while self._late and self._late[0][0] <= time.monotonic():
            _, peer, data = self._late.popleft()
            _send(peer, data)


def _send(peer: socket.socket, data: bytes) -> None:
    try:
        peer.sendall(data)
    except OSError:
        pass


def _reset(sock: socket.socket) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
