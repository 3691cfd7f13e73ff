"""Copy whole keys from one Redis to another, or from one prefix to another.

Each type is read and written by its own commands. DUMP and RESTORE would be shorter, but a server refuses what a newer
one or one of another vendor has dumped, and the user of the workers may not RESTORE.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from brainq.adapters.redis.keys import Keys
from brainq.errors import BrainqError

AT_ONCE = 10_000  # arguments of one command
NO_LIFETIME = -1


class KeyContent(NamedTuple):
    """The content of a key. Two contents are equal if scripts cannot tell their keys apart.

    kind: the type, as TYPE returns it.
    value: bytes, a list, a set, a dict, a list of (member, score), or a `Stream`.
    expires_ms: the end of its lifetime by the clock of Redis, or NO_LIFETIME.
    """

    kind: str
    value: Any
    expires_ms: int


class Stream(NamedTuple):
    """The entries of a stream, and the numbers from which it continues."""

    entries: list[tuple[bytes, dict[bytes, bytes]]]
    last_id: bytes
    added: int
    max_deleted_id: bytes


class KeySpace(NamedTuple):
    """The keys under one prefix of one Redis.

    client: a redis-py client that does not decode.
    """

    client: Any
    keys: Keys

    def rest(self, name: bytes) -> bytes:
        """Return a key's name without the prefix."""
        return name[len(self.keys.prefix.encode()) :]

    def name_in(self, other: KeySpace, name: bytes) -> bytes:
        """Return the name that a key of this space has in another one."""
        return other.keys.prefix.encode() + self.rest(name)


class Copied(NamedTuple):
    """The result of a copy: how many keys were there, and how many differed at the target."""

    found: int
    differed: int


def copy_keys(source: KeySpace, target: KeySpace, names: Sequence[bytes]) -> Copied:
    """Give the target's keys the content and the lifetime of the source's, and delete those that the source lacks.

    Keys that are the same already are not written.
    """
    named = [source.name_in(target, name) for name in names]
    contents = [_translated(source, target, content) for content in read_keys(source.client, names)]
    there = read_keys(target.client, named)
    differing = {name: new for name, new, old in zip(named, contents, there, strict=True) if new != old}
    if differing:
        write_keys(target.client, differing)
    return Copied(sum(content is not None for content in contents), len(differing))


def _translated(source: KeySpace, target: KeySpace, content: KeyContent | None) -> KeyContent | None:
    """Return the content as it must be at the target.

    One field has the name of a key: the queue of the budget for which a turn is parked.
    """
    line = content.value.get(b"line") if content is not None and content.kind == "hash" else None
    if content is None or line is None or not line.startswith(source.keys.money("line", "").encode()):
        return content
    return content._replace(value={**content.value, b"line": source.name_in(target, line)})


def read_keys(client: Any, names: Sequence[bytes]) -> list[KeyContent | None]:
    """Return the content of each key, or None for a missing key.

    client: a redis-py client that does not decode. Raises BrainqError for a type that brainq does not use.
    """
    pipe = client.pipeline(transaction=False)
    for name in names:
        pipe.type(name)
        pipe.pexpiretime(name)
    found = pipe.execute()
    kinds, ends = [kind.decode() for kind in found[::2]], found[1::2]
    pipe = client.pipeline(transaction=False)
    for name, kind in zip(names, kinds, strict=True):
        if kind not in (*_READERS, "none"):
            raise BrainqError(f"{name!r} is a {kind}, which is none of brainq's keys; delete it, or use another prefix")
        for read in _READERS.get(kind, ()):
            read(pipe, name)
    replies = iter(pipe.execute())
    contents: list[KeyContent | None] = []
    for kind, end in zip(kinds, ends, strict=True):
        parts = list(islice(replies, len(_READERS.get(kind, ()))))
        is_there = (bool(parts) and parts[0] not in (None, [], {}, set())) or kind == "stream"
        contents.append(KeyContent(kind, _value(kind, parts), int(end)) if is_there else None)
    return contents


def write_keys(client: Any, contents: Mapping[bytes, KeyContent | None]) -> None:
    """Give each key its content in one transaction, whatever it had before, and delete those that have None."""
    pipe = client.pipeline(transaction=True)
    for name, content in contents.items():
        pipe.delete(name)
        if content is not None:
            _WRITERS[content.kind](pipe, name, content.value)
            if content.expires_ms != NO_LIFETIME:
                pipe.pexpireat(name, content.expires_ms)
    pipe.execute()


_READERS: dict[str, tuple[Callable[[Any, bytes], object], ...]] = {
    "string": (lambda pipe, name: pipe.get(name),),
    "list": (lambda pipe, name: pipe.lrange(name, 0, -1),),
    "set": (lambda pipe, name: pipe.smembers(name),),
    "hash": (lambda pipe, name: pipe.hgetall(name),),
    "zset": (lambda pipe, name: pipe.zrange(name, 0, -1, withscores=True),),
    "stream": (lambda pipe, name: pipe.xrange(name), lambda pipe, name: pipe.xinfo_stream(name)),
}


def _value(kind: str, parts: Sequence[Any]) -> Any:
    if kind == "zset":
        return [(member, float(score)) for member, score in parts[0]]
    if kind != "stream":
        return parts[0]
    facts = {key if isinstance(key, str) else key.decode(): value for key, value in parts[1].items()}
    return Stream(
        [(number, dict(fields)) for number, fields in parts[0]],
        _as_bytes(facts["last-generated-id"]),
        int(facts["entries-added"]),
        _as_bytes(facts["max-deleted-entry-id"]),
    )


def _as_bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _pieces(items: Sequence[Any]) -> list[Sequence[Any]]:
    return [items[first : first + AT_ONCE] for first in range(0, len(items), AT_ONCE)]


def _write_string(pipe: Any, name: bytes, value: bytes) -> None:
    pipe.set(name, value)


def _write_list(pipe: Any, name: bytes, value: list[bytes]) -> None:
    for some in _pieces(value):
        pipe.rpush(name, *some)


def _write_set(pipe: Any, name: bytes, value: set[bytes]) -> None:
    for some in _pieces(sorted(value)):
        pipe.sadd(name, *some)


def _write_hash(pipe: Any, name: bytes, value: dict[bytes, bytes]) -> None:
    for some in _pieces(list(value.items())):
        pipe.hset(name, mapping=dict(some))


def _write_zset(pipe: Any, name: bytes, value: list[tuple[bytes, float]]) -> None:
    for some in _pieces(value):
        pipe.zadd(name, dict(some))


def _write_stream(pipe: Any, name: bytes, value: Stream) -> None:
    for number, fields in value.entries:
        pipe.xadd(name, fields, id=number)
    if not value.entries:  # it was trimmed
        pipe.xadd(name, {b"-": b"-"}, id=value.last_id)
        pipe.xtrim(name, maxlen=0, approximate=False)
    pipe.execute_command(
        *("XSETID", name, value.last_id, "ENTRIESADDED", value.added, "MAXDELETEDID", value.max_deleted_id)
    )


_WRITERS: dict[str, Callable[[Any, bytes, Any], None]] = {
    "string": _write_string,
    "list": _write_list,
    "set": _write_set,
    "hash": _write_hash,
    "zset": _write_zset,
    "stream": _write_stream,
}
