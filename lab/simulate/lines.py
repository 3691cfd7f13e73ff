"""Subscriptions: who listens to what, as Redis sees it, and what was published. Read at a known point of the run."""

from __future__ import annotations

import socket
from typing import Any, cast

import hiredis

_pack: Any = getattr(hiredis, "pack_command")  # noqa: B009 - it has no stub


class Line:
    """A connection to the server on a unix socket that listens to one channel."""

    def __init__(self, path: str, channel: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._reader = hiredis.Reader(encoding="utf-8")
        self._channel = channel
        self._send("SUBSCRIBE", channel)
        self._read()

    def heard(self) -> list[str]:
        """What was published since the last time: all that was, once the server has answered a ping."""
        self._send("PING")
        messages: list[str] = []
        while (reply := self._read())[0] == "message":
            messages.append(reply[2])
        return messages

    def close(self) -> None:
        """The server knows that nobody listens any more when this returns."""
        self._send("UNSUBSCRIBE", self._channel)
        while self._read()[0] != "unsubscribe":
            pass
        self._socket.close()

    def _send(self, *words: str) -> None:
        self._socket.sendall(_pack(words))

    def _read(self) -> list[Any]:
        while (reply := self._reader.gets()) is False:
            self._reader.feed(self._socket.recv(1 << 16))
        return cast("list[Any]", reply)
