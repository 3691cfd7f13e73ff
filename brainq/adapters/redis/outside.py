"""Results from outside: tokens and the completion of parked calls, and the servers' tasks that
parked calls wait for.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from brainq.adapters.redis.script_methods import Parameter, script
from brainq.adapters.redis.script_values import child_spend_json
from brainq.adapters.redis.scripts import Scripts
from brainq.contracts.call import (
    Progress,
    ServerTask,
    ServerTaskWatch,
    ToolOutcome,
    check_progress,
    parse_outside_token,
)
from brainq.contracts.claim import CallClaim, CallRef, SettleReply
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, TraceStatus
from brainq.runtime.observe.logs import logger

log = logger("brainq.state")

TOKEN_KEPT_AFTER_S = 86_400.0  # A result that comes too late is then rejected as late, and not for an unknown token.
# This counts from the end of the longest wait, for rows whose brain has no process left to delete them.
TASK_KEPT_AFTER_S = 86_400.0
UNREADABLE_KEPT_S = 30 * 86_400.0  # A row may wait this long for a process that can read it.

_NOT_YET_PARKED = frozenset({TraceStatus.DISPATCHED, TraceStatus.RUNNING})


class RedisOutsideResults:
    """The tokens of parked calls, their completion, and the server tasks that they wait for.

    A task is an entry of a sorted set per brain and effect. Its score is the end of the lease of the process that
    watches it.
    """

    def __init__(self, scripts: Scripts, *, lease_s: float) -> None:
        """`lease_s`: of a task's watcher."""
        self._scripts = scripts
        self._client = scripts.client
        self._keys = scripts.keys
        self._lease_ms = int(lease_s * 1000)
        self._unreadable: set[str] = set()  # Rows that were already logged.

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool:
        """Record which call waits for this token. Returns False if another call has it."""
        key = self._token_key(token)
        keep_ms = int((keep_s + TOKEN_KEPT_AFTER_S) * 1000)
        if self._client.set(key, ref.holder, nx=True, px=keep_ms):
            return True
        return self._client.get(key) == ref.holder

    def find(self, token: str) -> CallRef | None:
        """Return the call that waits, or waited, for a tool's token."""
        holder = cast("str | None", self._client.get(self._token_key(token)))
        return CallRef.from_holder(holder) if holder else None

    def complete(
        self,
        ref: CallRef,
        token: str,
        *,
        status: TraceStatus,
        message: Message,
        detail: str = "",
        retryable: bool = False,
        notice: Message | None = None,
        sources: Sequence[Mapping[str, str]] = (),
        spend: Spend | None = None,
        outcome: ToolOutcome | None = None,
    ) -> SettleReply:
        """Settle a parked call by its result, once: `SETTLED`, `EARLY`, `LATE`, `USED`, `BAD` or `GONE`.

        spend     what a child turn used, for which the turn of the call pays
        outcome   for the brain's hook, which a worker calls
        """
        # A tool's own token was registered for its call, and a child's token is its turn's id. Only the other tokens
        # contain their call, and such a token could be forged.
        known = parse_outside_token(token) is None
        spent = child_spend_json(spend)
        return self._complete(ref, token, known, status, message, detail, retryable, notice, sources, spent, outcome)

    @script("outside_complete", found=Parameter("sources"), others=SettleReply)
    def _complete(
        self,
        ref: CallRef,
        token: str,
        known: bool,
        status: TraceStatus,
        message: Message,
        detail: str,
        retryable: bool,
        notice: Message | None,
        sources: Sequence[Mapping[str, str]],
        spent: str,
        outcome: ToolOutcome | None,
    ) -> SettleReply: ...

    # The servers' tasks that parked calls wait for.

    def put_task(self, claim: CallClaim, task: ServerTask, token: str) -> ServerTaskWatch:
        """Record the task, and that this process watches it."""
        now_ms = self._now_ms()
        watched = ServerTaskWatch(
            claim.ref, claim.attempt, claim.owner, claim.brain, claim.effect, claim.tool, token, task, now_ms
        )
        row, key = _task_row(watched), self._keys.server_tasks(claim.brain, claim.effect.value)
        keep_ms = int((task.timeout_s + TASK_KEPT_AFTER_S) * 1000)
        _, left_ms = self._client.many([("ZADD", key, now_ms + self._lease_ms, row), ("PTTL", key)])
        if left_ms < keep_ms:
            self._client.pexpire(key, keep_ms)
        return replace(watched, row=row)

    def beat_task(self, task: ServerTaskWatch) -> Literal["OK", "BEGINS", "OVER"]:
        """Renew the lease on a task while its call waits for it."""
        ref = task.ref
        trace = self._keys.turn(ref.session_id, ref.turn_id) + ":trace"
        fields = [f"{ref.call_id}:{part}" for part in ("status", "token", "attempt")]
        (seconds, micros), (status, token, attempt) = self._client.many([("TIME",), ("HMGET", trace, *fields)])
        if attempt != str(task.attempt):
            return "OVER"
        if status == TraceStatus.PARKED and token == task.token:
            now_ms = int(seconds) * 1000 + int(micros) // 1000
            self._client.zadd(self._task_key(task), {task.row: now_ms + self._lease_ms}, xx=True)
            return "OK"
        return "BEGINS" if status in _NOT_YET_PARKED else "OVER"

    def lapsed_tasks(self, places: Collection[tuple[str, Effect]], limit: int) -> list[ServerTaskWatch]:
        """Return up to `limit` tasks of each brain and effect whose leases have lapsed, the earliest first.

        A row that another version wrote, and that this one cannot read, is put off for a lease: a process of that
        version takes it, and the others are reached.
        """
        if not places:
            return []
        now_ms = self._now_ms()
        keys = [self._keys.server_tasks(brain, effect.value) for brain, effect in places]
        found = self._client.many([("ZRANGEBYSCORE", key, "-inf", now_ms, "LIMIT", 0, limit) for key in keys])
        lapsed: list[ServerTaskWatch] = []
        for key, rows in zip(keys, found, strict=True):
            for row in rows:
                try:
                    lapsed.append(_read_watch(row))
                except (ValueError, LookupError, TypeError, AttributeError) as failure:
                    self._put_off(key, row, now_ms, failure)
        return lapsed

    def take_task(self, task: ServerTaskWatch) -> bool:
        """Watch a task whose lease has lapsed. Returns False if another process takes it."""
        digest = hashlib.sha256(task.token.encode()).hexdigest()[:32]
        if not self._client.set(self._keys.taking(digest), "1", nx=True, px=self._lease_ms):
            return False
        until_ms = self._now_ms() + self._lease_ms
        return bool(self._client.zadd(self._task_key(task), {task.row: until_ms}, xx=True, ch=True))

    def leave_tasks(self, tasks: Sequence[ServerTaskWatch]) -> None:
        if tasks:
            self._client.many([("ZADD", self._task_key(task), "XX", 0, task.row) for task in tasks])

    def drop_task(self, task: ServerTaskWatch) -> None:
        self._client.zrem(self._task_key(task), task.row)

    def publish_task_progress(self, task: ServerTaskWatch, message: str) -> None:
        """Publish the progress of a task: the seconds since its start, and the server's message."""
        progress = check_progress(max(0, self._now_ms() - task.begun_ms) // 1000, None, message)
        # The process that takes the task over does not publish the same progress again.
        self._publish_progress(task, zlib.crc32(progress.message.encode()), progress)

    @script("call_progress")
    def _publish_progress(self, task: ServerTaskWatch, number: int, progress: Progress) -> None: ...

    def _put_off(self, key: str, row: str, now_ms: int, failure: Exception) -> None:
        if now_ms - _read_begun_ms(row) > UNREADABLE_KEPT_S * 1000:
            self._client.zrem(key, row)
            log.error("a server's task that cannot be read is forgotten", failure=failure)
            return
        self._client.zadd(key, {row: now_ms + self._lease_ms}, xx=True)
        if row not in self._unreadable:
            self._unreadable.add(row)
            log.warning("a server's task is left to the version of brainq that wrote it", failure=failure)

    def _token_key(self, token: str) -> str:
        # A token may be long, and it is a secret, so the key's name does not contain it.
        return self._keys.outside(hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()[:32])

    def _task_key(self, task: ServerTaskWatch) -> str:
        return self._keys.server_tasks(task.brain, task.effect.value)

    def _now_ms(self) -> int:
        seconds, micros = self._client.time()
        return seconds * 1000 + micros // 1000


def _task_row(task: ServerTaskWatch) -> str:
    server_task = task.task
    return json.dumps(
        {
            "call": task.ref.holder,
            "attempt": task.attempt,
            "owner": task.owner,
            "brain": task.brain,
            "effect": task.effect.value,
            "tool": task.tool,
            "token": task.token,
            "task": [server_task.task_id, server_task.poll_ms, server_task.timeout_s, server_task.held_by],
            "begun": task.begun_ms,
        }
    )


def _read_watch(row: str) -> ServerTaskWatch:
    read: dict[str, Any] = json.loads(row)
    return ServerTaskWatch(
        CallRef.from_holder(read["call"]),
        read["attempt"],
        read["owner"],
        read["brain"],
        Effect(read["effect"]),
        read["tool"],
        read["token"],
        ServerTask(*read["task"][:4]),  # A newer version may have more fields.
        read["begun"],
        row,
    )


def _read_begun_ms(row: str) -> int:
    """Return when the row's task began, in ms, or 0 if the row does not contain it."""
    try:
        return int(json.loads(row)["begun"])
    except (ValueError, LookupError, TypeError):
        return 0
