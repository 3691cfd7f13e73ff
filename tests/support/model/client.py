"""A Redis client that is little more than a socket, because the model test spends most of its time in it."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any, cast

import hiredis

from tests.support.model.rules import BrokenRule

Command = Sequence[Any]


def pairs(flat: list[str]) -> dict[str, str]:
    return dict(zip(flat[::2], flat[1::2], strict=True))


_READ: dict[str, Callable[[Any], Any]] = {
    "hgetall": pairs,
    "smembers": set,
    "time": lambda reply: tuple(int(part) for part in reply),
}


class ModelClient:
    """The part of redis-py's client that brainq's adapter uses. `before` is called before each command."""

    def __init__(self, path: str, before: Callable[[], None]) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._reader = hiredis.Reader(encoding="utf-8", errors="replace")
        self._before = before

    def close(self) -> None:
        self._socket.close()

    def many(self, commands: Sequence[Command]) -> list[Any]:
        """Send all commands, and return their replies.

        Raises BrokenRule, after all replies are read, if one is an error.
        """
        pack = cast(Callable[[Any], bytes], getattr(hiredis, "pack_command"))  # noqa: B009 - it has no stub
        self._socket.sendall(b"".join([pack(tuple(command)) for command in commands]))
        replies: list[Any] = []
        refused: BrokenRule | None = None
        while len(replies) < len(commands):
            reply = self._reader.gets()
            if reply is False:
                self._reader.feed(self._socket.recv(1 << 16))
                continue
            if refused is None and isinstance(reply, hiredis.ReplyError):
                words = [str(word)[:60] for word in commands[len(replies)]]
                refused = BrokenRule(f"Redis refused {words}: {reply}")
            replies.append(reply)
        if refused is not None:
            raise refused
        return replies

    def execute_command(self, *words: Any) -> Any:
        self._before()
        return self.many([words])[0]

    def pipeline(self, transaction: bool = False) -> Pipeline:
        return Pipeline(self)

    def send_pipeline(self, commands: Sequence[Command]) -> list[Any]:
        self._before()
        return self.many(commands)

    def xrevrange(self, key: str, count: int) -> list[tuple[str, dict[str, str]]]:
        found = self.execute_command("XREVRANGE", key, "+", "-", "COUNT", count)
        return [(entry, pairs(flat_fields)) for entry, flat_fields in found]

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def command(*given: Any, **options: Any) -> Any:
            words = [word for option, value in options.items() for word in _option(option, value)]
            return _decoded(name, self.execute_command(name.upper(), *flat(given), *words))

        return command


class Pipeline:
    """The commands of one round trip."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._commands: list[tuple[str, list[Any]]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda *given: self._commands.append((name, flat(given)))

    def execute(self) -> list[Any]:
        replies = self._client.send_pipeline([(name.upper(), *words) for name, words in self._commands])
        return [_decoded(name, reply) for (name, _), reply in zip(self._commands, replies, strict=True)]


def _option(name: str, value: Any) -> tuple[Any, ...]:
    """Return an option as the protocol has it: a flag as its name, others with their value."""
    return (name.upper(),) if value is True else (name.upper(), value)


def _decoded(name: str, reply: Any) -> Any:
    read = _READ.get(name)
    return read(reply) if read else reply


def flat(given: Sequence[Any]) -> list[Any]:
    words: list[Any] = []
    for word in given:
        if isinstance(word, list | tuple):
            words.extend(cast(Sequence[Any], word))
        else:
            words.append(word)
    return words
