"""A tenant's keys in Redis: check whether its sessions are at rest, and hide, show, copy and remove the keys.

The name of a hidden key is `{session}:moving:` and the rest of the original name. Only the scripts `tenant_hide` and
`tenant_show` use such names, so nothing changes a turn while it is copied, and it cannot continue in two cells.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, cast

import redis

from brainq.adapters.redis.connection import make_pool
from brainq.adapters.redis.key_contents import KeySpace, copy_keys
from brainq.adapters.redis.keys import OF_SESSION, OF_TURN
from brainq.adapters.redis.money import MAX_RESUMED
from brainq.adapters.redis.script_methods import script
from brainq.adapters.redis.scripts import Scripts
from brainq.contracts.cell import Placement
from brainq.contracts.ids import PREFIX_BOUNDARY

SCAN_COUNT = 1000
AT_ONCE = 200  # The number of keys that are copied in one round trip.
WAITING_STATES = ("queued", "parked")
_SESSION_PARTS = (*sorted(OF_SESSION), "outbox")
_TURN_PARTS = ("-", *sorted(part for name, part in OF_TURN.items() if name != "turn"))  # `-`: the turn's own key
_TOKENS = (":token", ":given")
_GLOB = re.compile(r"([\[\]*?\\])")


@dataclass(frozen=True, slots=True)
class SessionKey:
    """The parts of a session key's name. `part` is the rest after the session."""

    session_id: str
    part: str
    is_hidden: bool

    @property
    def turn_id(self) -> str | None:
        """Return the id of the turn to which the key belongs."""
        found = re.fullmatch(r"t:([^:]+)", self.part)
        return found[1] if found else None


class RedisMovedWords:
    """The records, which scripts read, of tenants that are no longer in this cell."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._key = scripts.keys.moved

    def all(self) -> dict[str, Placement]:
        """Return the records by tenant. A tenant that is about to move has no cell."""
        found = cast("dict[str, str]", self._scripts.client.hgetall(self._key))
        return {tenant: _placement(word) for tenant, word in found.items()}

    def of(self, tenant: str) -> Placement | None:
        word = cast("str | None", self._scripts.client.hget(self._key, tenant))
        return None if word is None else _placement(word)

    def put(self, tenant: str, placement: Placement | None) -> None:
        """Write a tenant's record, or remove it if `placement` is None. The record of a later move stays unchanged, and
        so does that of a tenant which has already moved."""
        after = "" if placement is None else f"{placement.cell} {placement.epoch}"
        before = ""
        while True:
            changed = self._replace(tenant, before, after)
            if changed is None:
                return
            before = changed
            if placement is not None and _is_later(_placement(before), placement):
                return

    def put_back(self, tenant: str, placement: Placement) -> None:
        """Replace a tenant's record, whatever it is, because a move is undone."""
        self.put(tenant, None)
        self.put(tenant, placement)

    def restore(self, tombstones: Mapping[str, Placement]) -> int:
        """Write the given records that are missing here, or belong to an earlier move. Returns their number."""
        known, restored = self.all(), 0
        for tenant, placement in tombstones.items():
            if tenant not in known or known[tenant].epoch < placement.epoch:
                self.put(tenant, placement)
                restored += 1
        return restored

    def forget(self, known: Mapping[str, Placement], tombstones: Mapping[str, Placement]) -> None:
        """Remove those of `known` that SQL, read later, did not have: their move ended, but its process died before it
        removed them."""
        for tenant, placement in known.items():
            if tenant not in tombstones:
                word = f"{placement.cell} {placement.epoch}"
                self._replace(tenant, word, "")

    @script("moved_word", DONE=None, CHANGED=str)
    def _replace(self, tenant: str, before: str, after: str) -> str | None: ...


class RedisTenantKeys:
    """The keys of tenants in one Redis. A tenant is named by its key."""

    def __init__(self, scripts: Scripts, redis_url: str) -> None:
        self._scripts = scripts
        self._client = scripts.client
        self._keys = scripts.keys
        # Contents are copied as bytes.
        pool = make_pool(redis_url, max_connections=4, socket_timeout=30.0)
        self._space = KeySpace(redis.Redis(connection_pool=pool), scripts.keys)

    def close(self) -> None:
        self._space.client.close()
        self._space.client.connection_pool.disconnect()

    def names(self, tenant: str) -> Iterator[str]:
        """Return all keys of the tenant's sessions, including hidden ones. A key that is created or renamed meanwhile
        may be missing."""
        begins = glob_literal(f"{self._keys.prefix}{{{tenant}")
        pattern = begins + ("*" if tenant.endswith(PREFIX_BOUNDARY) else "}:*")
        seen = set[str]()
        for name in self._client.scan_iter(match=pattern, count=SCAN_COUNT):
            if name not in seen:
                seen.add(name)
                yield name

    def parse(self, name: str) -> SessionKey:
        session_id, _, part = name.removeprefix(f"{self._keys.prefix}{{").partition("}:")
        return SessionKey(session_id, part.removeprefix("moving:"), part.startswith("moving:"))

    def sessions(self, tenant: str) -> list[str]:
        return sorted({self.parse(name).session_id for name in self.names(tenant)})

    def busy_turns(self, tenant: str) -> list[str]:
        """Return the turns that are being worked on: live turns that are not parked, and ended turns whose finalizer is
        not done."""
        turns = [name for name in self.names(tenant) if self.parse(name).turn_id and not self.parse(name).is_hidden]
        busy: list[str] = []
        for some in _batches(turns):
            commands = [command for name in some for command in (("HGET", name, "state"), ("PTTL", name))]
            replies = self._client.replies(commands)
            for name, state, left_ms in zip(some, replies[::2], replies[1::2], strict=True):
                if isinstance(state, str) and state not in WAITING_STATES and left_ms == -1:
                    busy.append(str(self.parse(name).turn_id))
        return busy

    def sessions_with_a_line(self, tenant: str) -> list[str]:
        """Return the sessions whose next turn would begin if the live one ended."""
        return sorted(
            key.session_id for key in map(self.parse, self.names(tenant)) if key.part == "waiting" and not key.is_hidden
        )

    def hide(self, tenant: str) -> list[str]:
        """Hide all sessions of the tenant. Returns the turns that kept their sessions from being hidden."""
        busy: list[str] = []
        for session_id in self.sessions(tenant):
            turn = self._hide(session_id)
            if turn is not None:
                busy.append(turn)
        return busy

    @script("tenant_hide", session_parts=_SESSION_PARTS, turn_parts=_TURN_PARTS, HIDDEN=None, BUSY=str)
    def _hide(self, session_id: str) -> str | None: ...

    def show(self, tenant: str) -> None:
        """Give all hidden keys their original names."""
        hidden: dict[str, list[str]] = {}
        for name in self.names(tenant):
            key = self.parse(name)
            if key.is_hidden:
                hidden.setdefault(key.session_id, []).append(name)
        for session_id, names in sorted(hidden.items()):
            turns = [turn for turn in (self.parse(name).turn_id for name in names) if turn]
            self._show(session_id, turns, sorted(names))

    @script("tenant_show")
    def _show(self, session_id: str, awaits: Sequence[str], hidden: Sequence[str]) -> None: ...

    def have_rows_compared(self) -> None:
        """Make sweepers compare all rows of SQL with this Redis again, because SQL may have turns that it lacks."""
        self._client.delete(self._keys.epoch)

    def has_hidden(self, tenant: str) -> bool:
        return any(self.parse(name).is_hidden for name in self.names(tenant))

    def waiting_turns(self, tenant: str) -> list[tuple[str, str]]:
        """Return (session, turn) of the turns that are hidden."""
        keys = (self.parse(name) for name in self.names(tenant))
        return sorted((key.session_id, key.turn_id) for key in keys if key.is_hidden and key.turn_id)

    def copy_to(self, other: RedisTenantKeys, tenant: str) -> int:
        """Copy all keys to the other cell, replacing what is there. Returns their number."""
        batches = _batches(self.names(tenant))
        return sum(copy_keys(self._space, other._space, [name.encode() for name in names]).found for names in batches)

    def count(self, tenant: str) -> int:
        """Return the number of the tenant's keys that have no lifetime."""
        count = 0
        for names in _batches(self.names(tenant)):
            count += sum(left_ms == -1 for left_ms in self._client.replies([("PTTL", name) for name in names]))
        return count

    def remove(self, tenant: str) -> int:
        """Delete all keys of the tenant and its entries in the index. Returns the number of keys."""
        removed = 0
        for names in _batches(list(self.names(tenant))):
            turns = [(key.session_id, key.turn_id) for key in map(self.parse, names) if key.turn_id]
            commands: list[tuple[Any, ...]] = [("UNLINK", *names)]
            if turns:
                commands.append(("ZREM", self._keys.index, *(f"{sid} {tid}" for sid, tid in turns)))
            removed += self._client.many(commands)[0]
        return removed

    # The keys that are not under the sessions' names: lanes, tokens and servers' tasks of parked calls, and positions
    # of turns in the queues of budgets.

    def copy_outside(self, other: RedisTenantKeys, tenant: str) -> dict[str, int]:
        """Copy the tokens, lanes and servers' tasks of hidden turns. Returns the number of each. Idempotent."""
        tokens = self._tokens(tenant)
        for name in tokens:
            value, left_ms = self._client.many([("GET", name), ("PTTL", name)])
            if value is not None and left_ms > 0:
                other._client.set(self._named_in(other, name), value, px=left_ms)
        lanes = self._lanes(tenant)
        for holder, (names, until_ms) in lanes.items():
            if other._client.hsetnx(other._keys.lane_holders, holder, json.dumps(names)):
                for lane in names:
                    other._client.rpush(other._keys.lane(lane), holder)
            if until_ms is not None:
                other._client.zadd(other._keys.lane_leases, {holder: until_ms})
        tasks = self._tasks(tenant)
        for name, row, until_ms in tasks:
            there = self._named_in(other, name)
            other._client.zadd(there, {row: until_ms})
            left_ms = self._client.pttl(name)
            if left_ms > 0 and other._client.pttl(there) < left_ms:
                other._client.pexpire(there, left_ms)
        for line, member, place, left_ms in self._money_lines(tenant):
            there = self._named_in(other, line)
            other._client.zadd(there, {member: place}, nx=True)
            other._client.pexpire(there, left_ms)
        return {"tokens": len(tokens), "lanes": len(lanes), "tasks": len(tasks)}

    def _named_in(self, other: RedisTenantKeys, name: str) -> str:
        """Return the name of a key in the other cell, which has a prefix of its own on a Redis Cluster."""
        return other._keys.prefix + name.removeprefix(self._keys.prefix)

    def remove_outside(self, tenant: str) -> None:
        """Delete the tokens, lanes and servers' tasks of hidden turns. The sweeper passes such lanes to the calls that
        wait for them."""
        for name in self._tokens(tenant):
            self._client.delete(name)
        for holder, (names, _) in self._lanes(tenant).items():
            for lane in names:
                self._client.lrem(self._keys.lane(lane), 0, holder)
            self._client.hdel(self._keys.lane_holders, holder)
            self._client.zrem(self._keys.lane_leases, holder)
        for name, row, _ in self._tasks(tenant):
            self._client.zrem(name, row)
        for line, member, _, _ in self._money_lines(tenant):
            self._client.zrem(line, member)

    def ask_for_money_again(self, tenant: str) -> None:
        """Make turns that are parked for budgets try again, in the order of their queues, because a budget may have
        been raised while they were hidden."""
        turns = [name for name in self.names(tenant) if self.parse(name).turn_id]
        lines = set[str]()
        for some in _batches(turns):
            found = self._client.replies([("HGET", name, "line") for name in some])
            lines.update(line for line in found if isinstance(line, str))
        for line in sorted(lines):
            self._resume_parked(line)

    @script("money_resume", most=MAX_RESUMED)
    def _resume_parked(self, parked_line: str) -> None: ...

    def forget_counter(self, window: str, start_ms: int) -> None:
        """Delete the counter of a budget's window, such as `tenant acme:/day`, so that it is read from SQL again."""
        self._client.delete(f"{self._keys.money('w', window)}:{start_ms}")

    def _money_lines(self, tenant: str) -> list[tuple[str, str, float, int]]:
        """Return (queue, turn, position, lifetime) of hidden turns that are parked for a budget."""
        found: list[tuple[str, str, float, int]] = []
        for session_id, turn_id in self.waiting_turns(tenant):
            hidden = f"{self._keys.prefix}{{{session_id}}}:moving:t:{turn_id}"
            line, place = cast("list[str | None]", self._client.hmget(hidden, ["line", "line_place"]))
            if line is not None:
                found.append((line, f"{session_id} {turn_id}", float(place or 0), max(self._client.pttl(line), 1000)))
        return found

    def _tokens(self, tenant: str) -> list[str]:
        """Return the keys of tokens that parked calls have given away."""
        found: list[str] = []
        for name in self.names(tenant):
            key = self.parse(name)
            if key.is_hidden and key.part.endswith(":trace"):
                trace = cast("dict[str, str]", self._client.hgetall(name))
                found += [_token_digest(value) for field, value in trace.items() if field.endswith(_TOKENS)]
        return [self._keys.outside(digest) for digest in found]

    def _lanes(self, tenant: str) -> dict[str, tuple[list[str], float | None]]:
        """Return the lanes of each holder and the end of its lease, in the order of the lanes' queues."""
        held: dict[str, list[str]] = {}
        for holder, lanes in self._client.hscan_iter(self._keys.lane_holders, count=SCAN_COUNT):
            if _is_of(tenant, holder.split(" ")[0]):
                held[holder] = json.loads(lanes)
        places: dict[str, int] = {}
        for lane in {lane for lanes in held.values() for lane in lanes}:
            for at, holder in enumerate(cast("list[str]", self._client.lrange(self._keys.lane(lane), 0, -1))):
                places[holder] = max(places.get(holder, 0), at)
        ordered = sorted(held, key=lambda holder: (places.get(holder, 0), holder))
        return {holder: (held[holder], self._client.zscore(self._keys.lane_leases, holder)) for holder in ordered}

    def _tasks(self, tenant: str) -> list[tuple[str, str, float]]:
        """Return (key, row, until) of the servers' tasks that the tenant's calls wait for."""
        found: list[tuple[str, str, float]] = []
        pattern = glob_literal(self._keys.server_tasks("", "")[:-1]) + "*"
        for name in self._client.scan_iter(match=pattern, count=SCAN_COUNT):
            for row, until_ms in self._client.zscan_iter(name, count=SCAN_COUNT):
                try:
                    holder = str(json.loads(row)["call"])
                except (ValueError, LookupError, TypeError):
                    continue
                if _is_of(tenant, holder.split(" ")[0]):
                    found.append((name, row, until_ms))
        return found


def glob_literal(text: str) -> str:
    """Return the pattern of SCAN that matches this text."""
    return _GLOB.sub(r"\\\1", text)


def _placement(word: str) -> Placement:
    cell, _, epoch = word.partition(" ")
    return Placement(cell, int(epoch))


def _is_later(known: Placement, new: Placement) -> bool:
    return (known.epoch, bool(known.cell)) > (new.epoch, bool(new.cell))


def _is_of(tenant: str, session_id: str) -> bool:
    return session_id.startswith(tenant) if tenant.endswith(PREFIX_BOUNDARY) else session_id == tenant


def _token_digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _batches(names: Iterator[str] | Sequence[str]) -> Iterator[list[str]]:
    each = iter(names)
    while batch := list(islice(each, AT_ONCE)):
        yield batch
