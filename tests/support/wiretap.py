"""The messages that pass through Redis: every LPUSH to a queue and every PUBLISH, seen with MONITOR."""

from __future__ import annotations

import base64
import re
import socket
import threading
from types import TracebackType
from typing import Self

_BASE64 = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")


def _decoded(line: str) -> str:
    """Return the texts that kombu wraps in base64."""
    found: list[str] = []
    for part in _BASE64.findall(line):
        try:
            found.append(base64.b64decode(part).decode(errors="replace"))
        except ValueError:  # it only looked like base64
            continue
    return " ".join(found)


class Wiretap:
    """A collector of one server's broker traffic: doorbells (also those that scripts push), events, remote control."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("redis://").split("/")[0].split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._reader = self._socket.makefile("rb")
        self._socket.sendall(b"MONITOR\r\n")
        assert self._reader.readline() == b"+OK\r\n"
        self._socket.settimeout(None)
        self.lines: list[str] = []
        self._closing = False
        self._thread = threading.Thread(target=self._read, name="wiretap", daemon=True)
        self._thread.start()

    def holds(self, *texts: str) -> list[str]:
        """Return the lines that contain all of `texts`."""
        return [line for line in list(self.lines) if all(text in line for text in texts)]

    def _read(self) -> None:
        try:
            self._collect()
        except ConnectionResetError:
            # The server goes on telling while we hang up. In the middle of a test it would be a hole in what was heard.
            if not self._closing:
                raise

    def _collect(self) -> None:
        for raw in self._reader:
            line = raw.decode(errors="replace")
            words = line.upper()
            if ' "LPUSH" ' in words or ' "PUBLISH" ' in words or ' "RPUSH" "BQ:BRAINQ.' in words:
                self.lines.append(line + _decoded(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(60)
        self._reader.close()
        self._socket.close()
