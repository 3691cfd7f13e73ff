"""What goes over Redis as messages: every LPUSH to a queue and every PUBLISH, seen with MONITOR."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self


class Wiretap:
    """Collects the broker's traffic of one server: doorbells (also those scripts push), events, remote control."""

    def __init__(self, url: str) -> None:
        host, port = url.removeprefix("redis://").split("/")[0].split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=10)
        self._reader = self._socket.makefile("rb")
        self._socket.sendall(b"MONITOR\r\n")
        assert self._reader.readline() == b"+OK\r\n"
        self._socket.settimeout(None)
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read, name="wiretap", daemon=True)
        self._thread.start()

    def holds(self, *texts: str) -> list[str]:
        """The lines that hold all of `texts`."""
        return [line for line in list(self.lines) if all(text in line for text in texts)]

    def _read(self) -> None:
        for raw in self._reader:
            line = raw.decode(errors="replace")
            words = line.upper()
            if ' "LPUSH" ' in words or ' "PUBLISH" ' in words or ' "RPUSH" "BQ:BRAINQ.' in words:
                self.lines.append(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(5)
        self._reader.close()
        self._socket.close()
