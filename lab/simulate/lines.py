"""Subscriptions: connections that listen to a channel and are read at a known point of the run."""

from __future__ import annotations

import socket
from typing import Any, cast

import hiredis

_pack: Any = getattr(hiredis, "pack_command")  # noqa: B009 - it has no stub


class Line:
    """A connection that listens to one channel of the server on a unix socket."""

    def __init__(self, path: str, channel: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._reader = hiredis.Reader(encoding="utf-8")
        self._channel = channel
        self._send("SUBSCRIBE", channel)
        self._read()

    def heard(self) -> list[str]:
        """Return the messages published since the last call. A ping's reply shows that there are no more."""
        self._send("PING")
        messages: list[str] = []
        while (reply := self._read())[0] == "message":
            messages.append(reply[2])
        return messages

    def close(self) -> None:
        """Unsubscribe and close. When this returns, the server no longer counts the listener."""
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
