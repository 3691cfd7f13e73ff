"""Tasks of servers that parked calls wait for. Fits `ports.server_tasks.ServerTasks`."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, Literal

from brainq.contracts.claim import CallClaim, CallRef
from brainq.contracts.effect import Effect
from brainq.contracts.progress import checked_progress
from brainq.contracts.server_task import ServerTask, WatchedTask
from brainq.contracts.status import TraceStatus
from brainq.observe.logs import logger
from brainq.state.connection import Client
from brainq.state.keys import Keys
from brainq.state.script_values import as_json
from brainq.state.typed_scripts import Scripts

KEPT_AFTER_S = (
    86_400.0  # once the longest wait is over; for rows that no process of their brain is left to drop
)
UNREADABLE_S = 30 * 86_400.0  # so long a row may wait for a process that can read it
log = logger("brainq.state")

_BEGINNING = frozenset({TraceStatus.DISPATCHED, TraceStatus.RUNNING})


class RedisServerTasks:
    """Rows of one sorted set a brain and effect; a row's score is until when somebody beats for it."""

    def __init__(self, client: Client, scripts: Scripts, keys: Keys, *, lease_s: float) -> None:
        self._client = client
        self._run = scripts
        self._keys = keys
        self._lease_ms = int(lease_s * 1000)
        self._unreadable: set[str] = set()  # told

    def put(self, claim: CallClaim, task: ServerTask, token: str) -> WatchedTask:
        """Note the task, and that this process asks for it."""
        now_ms = self._now_ms()
        watched = WatchedTask(
            claim.ref, claim.attempt, claim.owner, claim.brain, claim.effect, claim.tool, token, task, now_ms
        )
        row, key = _row(watched), self._keys.server_tasks(claim.brain, claim.effect.value)
        keep_ms = int((task.timeout_s + KEPT_AFTER_S) * 1000)
        _, left_ms = self._client.many([("ZADD", key, now_ms + self._lease_ms, row), ("PTTL", key)])
        if left_ms < keep_ms:
            self._client.pexpire(key, keep_ms)
        return replace(watched, row=row)

    def beat(self, task: WatchedTask) -> Literal["OK", "BEGINS", "OVER"]:
        """Go on watching it, as long as its call waits for it."""
        ref = task.ref
        trace = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        fields = [f"{ref.call_id}:{part}" for part in ("status", "token", "attempt")]
        (seconds, micros), (status, token, attempt) = self._client.many(
            [("TIME",), ("HMGET", trace, *fields)]
        )
        if attempt != str(task.attempt):
            return "OVER"
        if status == TraceStatus.PARKED and token == task.token:
            now_ms = int(seconds) * 1000 + int(micros) // 1000
            self._client.zadd(self._key(task), {task.row: now_ms + self._lease_ms}, xx=True)
            return "OK"
        return "BEGINS" if status in _BEGINNING else "OVER"

    def lapsed(self, places: Collection[tuple[str, Effect]], most: int) -> list[WatchedTask]:
        """Up to `most` of each brain and effect, those that lapsed first. A row that another version wrote, and
        this one cannot read, is put off for a lease: a process of that version takes it, and the others are reached.
        """
        if not places:
            return []
        now_ms = self._now_ms()
        keys = [self._keys.server_tasks(brain, effect.value) for brain, effect in places]
        found = self._client.many([("ZRANGEBYSCORE", key, "-inf", now_ms, "LIMIT", 0, most) for key in keys])
        lapsed: list[WatchedTask] = []
        for key, rows in zip(keys, found, strict=True):
            for row in rows:
                try:
                    lapsed.append(_task(row))
                except (ValueError, LookupError, TypeError, AttributeError) as failure:
                    self._put_off(key, row, now_ms, failure)
        return lapsed

    def take(self, task: WatchedTask) -> bool:
        """Watch one that lapsed. False: another process takes it."""
        digest = hashlib.sha256(task.token.encode()).hexdigest()[:32]
        if not self._client.set(self._keys.taking(digest), "1", nx=True, px=self._lease_ms):
            return False
        until_ms = self._now_ms() + self._lease_ms
        return bool(self._client.zadd(self._key(task), {task.row: until_ms}, xx=True, ch=True))

    def leave(self, tasks: Sequence[WatchedTask]) -> None:
        if tasks:
            self._client.many([("ZADD", self._key(task), "XX", 0, task.row) for task in tasks])

    def drop(self, task: WatchedTask) -> None:
        self._client.zrem(self._key(task), task.row)

    def tell(self, task: WatchedTask, message: str) -> None:
        """How far it is: seconds since it was given, and the server's words."""
        ref = task.ref
        progress = checked_progress(max(0, self._now_ms() - task.begun_ms) // 1000, None, message)
        self._run.call_progress(
            ref.session_id,
            ref.turn_id,
            owner=task.owner,
            call=ref.call_id,
            attempt=task.attempt,
            # Whoever goes on with the task does not tell again what was told last.
            number=zlib.crc32(progress.message.encode()),
            said=as_json(progress),
        )

    def _put_off(self, key: str, row: str, now_ms: int, failure: Exception) -> None:
        if now_ms - _begun_ms(row) > UNREADABLE_S * 1000:
            self._client.zrem(key, row)
            log.error("a server's task that cannot be read is forgotten", failure=failure)
            return
        self._client.zadd(key, {row: now_ms + self._lease_ms}, xx=True)
        if row not in self._unreadable:
            self._unreadable.add(row)
            log.warning("a server's task is left to the version of brainq that wrote it", failure=failure)

    def _key(self, task: WatchedTask) -> str:
        return self._keys.server_tasks(task.brain, task.effect.value)

    def _now_ms(self) -> int:
        seconds, micros = self._client.time()
        return seconds * 1000 + micros // 1000


def _row(task: WatchedTask) -> str:
    said = task.task
    return json.dumps(
        {
            "call": task.ref.holder,
            "attempt": task.attempt,
            "owner": task.owner,
            "brain": task.brain,
            "effect": task.effect.value,
            "tool": task.tool,
            "token": task.token,
            "task": [said.task_id, said.poll_ms, said.timeout_s, said.held_by],
            "begun": task.begun_ms,
        }
    )


def _task(row: str) -> WatchedTask:
    read: dict[str, Any] = json.loads(row)
    return WatchedTask(
        CallRef.of_holder(read["call"]),
        read["attempt"],
        read["owner"],
        read["brain"],
        Effect(read["effect"]),
        read["tool"],
        read["token"],
        ServerTask(*read["task"][:4]),  # a newer version may say more
        read["begun"],
        row,
    )


def _begun_ms(row: str) -> int:
    """0 where the row does not say."""
    try:
        return int(json.loads(row)["begun"])
    except (ValueError, LookupError, TypeError):
        return 0
