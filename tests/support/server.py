"""A real Redis server for tests, which is emptied between them."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from pathlib import Path
from typing import IO

from brainq.app.devserver.redis_server import EmbeddedServer


class RedisServer:
    """A server in a temporary directory, without persistence unless `durable`.

    `unix=True` listens on a unix socket only, otherwise on a free loopback port. `url` is for redis-py.
    """

    def __init__(self, *, unix: bool = False, durable: bool = False) -> None:
        # A short directory of its own: pytest's own are too long for a unix socket's path.
        self.directory = Path(tempfile.mkdtemp(prefix="bq-"))
        path = self.directory / "s" if unix else None
        self._server = EmbeddedServer(self.directory, unix_socket=path, durable=durable)
        self._socket = path
        self._port = 0

    def start(self) -> RedisServer:
        self._server.start()
        return self

    def stop(self) -> None:
        self._server.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    def crash(self) -> None:
        """Kill the server with SIGKILL, and start it again on the same address, with the data of its append-only
        file."""
        self.kill()
        self.again()

    def kill(self) -> None:
        """SIGKILL the server."""
        assert self._server.durable
        self._port = int(self.url.rpartition(":")[2].split("/")[0])
        os.kill(self.pid, signal.SIGKILL)
        self._server.stop()

    def again(self) -> None:
        """Start the killed server on the same address, with the data of its append-only file."""
        self._server = EmbeddedServer(self.directory, port=self._port, durable=True)
        self._server.start()

    def restart(self) -> None:
        """Let the server write its data and exit, and start it again on the same address."""
        assert self._server.durable
        self._port = int(self.url.rpartition(":")[2].split("/")[0])
        self._server.stop()
        self.again()

    @property
    def pid(self) -> int:
        """Return the process id of the server."""
        return int("".join(self.command("INFO", "server")).split("process_id:")[1].split()[0])

    @property
    def url(self) -> str:
        return self._server.url

    @property
    def socket_path(self) -> str:
        """The path of the unix socket, of a server with `unix=True`."""
        return str(self._socket)

    def flushall(self) -> None:
        """Remove every key. Scripts stay, because they depend on their text alone."""
        self.command("FLUSHALL")

    def keys(self) -> list[str]:
        """Return every key of database 0, sorted."""
        return sorted(str(key) for key in self.command("KEYS", "*"))

    def command(self, *words: str) -> list[str]:
        """Send one command over a separate socket, and return the reply as a flat list of texts.

        Raises AssertionError if the server replies with an error.
        """
        with self._connect() as connection, connection.makefile("rb") as reply:
            parts = [word.encode() for word in words]
            head = b"*%d\r\n" % len(parts)
            connection.sendall(head + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts))
            return _read(reply.readline(), reply)

    def _connect(self) -> socket.socket:
        if self._socket is not None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            connection.settimeout(10)
            connection.connect(str(self._socket))
            return connection
        host, port = self.url.removeprefix("redis://").split("/")[0].split(":")
        return socket.create_connection((host, int(port)), timeout=10)


def _read(line: bytes, reply: IO[bytes]) -> list[str]:
    kind, text = line[:1], line[1:].strip().decode()
    assert kind != b"-", f"Redis replied: {text}"
    if kind == b"$":
        size = int(text)
        if size < 0:
            return []
        return [reply.read(size + 2)[:-2].decode()]
    if kind == b"*":
        return [part for _ in range(int(text)) for part in _read(reply.readline(), reply)]
    return [text]
