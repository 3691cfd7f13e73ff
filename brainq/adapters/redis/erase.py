"""Erase sessions from Redis: their keys, and their entries in keys that all sessions share."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from brainq.adapters.redis.connection import Client
from brainq.adapters.redis.keys import Keys
from brainq.contracts.erasure import ErasureScope
from brainq.contracts.ids import PREFIX_BOUNDARY

PAGE = 500
_SPECIAL = str.maketrans({special: f"\\{special}" for special in "*?[]^\\"})


class RedisErasure:
    """The erasure of a session or tenant from a Redis. It scans all keys in pages, which takes seconds for millions."""

    def __init__(self, client: Client, keys: Keys, scope: ErasureScope) -> None:
        self._client = client
        self._keys = keys
        self._scope = scope

    def erase(self) -> int:
        """Delete the keys and entries. Returns their number. Idempotent."""
        gone = 0
        for found in self._own_keys():
            gone += self._client.unlink(*found)
        for key, members in self._shared_entries():
            gone += self._client.zrem(key, *members)
        for found in (*self._tokens(), *self._bulks()):
            gone += self._client.unlink(*found)
        return gone

    def left(self) -> int:
        """Return the number of keys and entries that are left."""
        entries = sum(len(members) for _, members in self._shared_entries())
        return sum(map(len, (*self._own_keys(), *self._tokens(), *self._bulks()))) + entries

    def rewrite_file(self) -> str:
        """Make Redis rewrite its append-only file, which still contains the deleted data. Returns why it does not, or
        ""."""
        try:
            if str(self._client.config_get("appendonly").get("appendonly")) == "yes":
                self._client.bgrewriteaof()
            else:
                self._client.bgsave()
        except Exception as refused:
            return f"Redis was not asked to write its file anew ({refused}); it does so by itself when it has grown"
        return ""

    def _own_keys(self) -> Iterator[Sequence[str]]:
        """Yield pages of the keys of the scope's sessions and turns."""
        name = self._scope.name.translate(_SPECIAL)
        begins = f"{self._keys.prefix.translate(_SPECIAL)}{{{name}"
        pattern = f"{begins}*" if self._scope.is_tenant else f"{begins}}}:*"
        yield from self._scan(pattern)
        if self._scope.is_tenant:
            prefix = self._keys.prefix.translate(_SPECIAL)
            yield from self._scan(f"{prefix}{{room}}:line:{name}")
            for kind in ("tenant", "user"):  # The counters of the scope's budgets.
                yield from self._scan(f"{prefix}{{money}}:*:{kind} {name}*")

    def _tokens(self) -> Iterator[Sequence[str]]:
        """Yield pages of the keys of tokens for the scope's calls."""
        for keys in self._scan(f"{self._keys.prefix.translate(_SPECIAL)}outside:*"):
            values: list[Any] = self._client.mget(keys)
            mine = [key for key, value in zip(keys, values, strict=True) if value and self._is_mine(str(value))]
            if mine:
                yield mine

    def _bulks(self) -> Iterator[Sequence[str]]:
        """Yield pages of the reports of bulks whose filter names the scope, or that were only about it."""
        name = json.dumps(self._scope.name.removesuffix(PREFIX_BOUNDARY))[1:-1]
        named = re.compile(rf"(?<![A-Za-z0-9._@+-]){re.escape(name)}(?![A-Za-z0-9._@+-])")  # not `acme2` for `acme`
        for keys in self._scan(f"{self._keys.prefix.translate(_SPECIAL)}bulk:*"):
            reports = self._client.many([("HGET", key, "report") for key in keys])
            mine = [key for key, report in zip(keys, reports, strict=True) if named.search(report or "")]
            if mine:
                yield mine

    def _shared_entries(self) -> Iterator[tuple[str, list[str]]]:
        """Yield the scope's entries in the sorted sets of all sessions. Entries begin with the session's id."""
        for key in (self._keys.index, self._keys.room_live):
            mine = [member for member in self._members(key) if self._is_mine(member)]
            if mine:
                yield key, mine

    def _is_mine(self, entry: str) -> bool:
        """Return whether an entry belongs to the scope: `SESSION TURN ...`, or ` BRAIN SESSION TURN` with a leading
        space."""
        words = entry.split(" ")
        return self._scope.has(words[2] if not words[0] and len(words) > 2 else words[0])

    def _members(self, key: str) -> Iterator[str]:
        return (str(member) for member, _ in self._client.zscan_iter(key, count=PAGE))

    def _scan(self, pattern: str) -> Iterator[Sequence[str]]:
        page: list[str] = []
        for key in self._client.scan_iter(match=pattern, count=PAGE):
            page.append(key)
            if len(page) >= PAGE:
                yield page
                page = []
        if page:
            yield page
