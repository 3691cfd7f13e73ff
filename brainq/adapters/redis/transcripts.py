"""A turn's trace, its messages and its runtime state so far."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, cast

from brainq.adapters.redis.connection import as_mapping
from brainq.adapters.redis.conversations import MAX_READ_MESSAGES
from brainq.adapters.redis.script_methods import Parameter, script
from brainq.adapters.redis.scripts import Scripts
from brainq.adapters.redis.turn_view import read_newest_text, read_usage
from brainq.contracts.call import ToolTraceEntry
from brainq.contracts.ids import call_id, parse_call_id
from brainq.contracts.message import Message
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import Effect, TraceStatus
from brainq.errors import TurnNotFound

TRACE_FIELDS = (
    *("tool", "effect", "status", "wave", "attempt", "hash", "lanes", "dispatched_at", "started_at", "ended_at"),
    *("latency", "waits_at", "owner", "repairs", "retryable", "detail", "park", "stop", "msg"),
)
"""The fields of a call that are read: the fields `CALL:part` of the hash."""

FEW_CALLS = 32  # Up to this many calls are read separately, without the other calls of their turn.


def read_trace(fields: Mapping[str, str]) -> tuple[ToolTraceEntry, ...]:
    """Return every call of a turn, in the order in which the model made them."""
    rows: dict[str, dict[str, str]] = {}
    for field, value in fields.items():
        call, part = field.split(":", 1)
        rows.setdefault(call, {})[part] = value
    entries = [_trace_entry(call, row) for call, row in rows.items()]
    return tuple(sorted(entries, key=lambda entry: parse_call_id(entry.call_id)))


def read_results(fields: Mapping[str, str]) -> tuple[Message, ...]:
    """Return the tool messages of calls that have ended although their step has not, and of the calls of step 0."""
    return tuple(Message.from_stored(value) for field, value in fields.items() if field.endswith(":msg"))


def _trace_entry(call: str, row: Mapping[str, str]) -> ToolTraceEntry:
    return ToolTraceEntry(
        call_id=call,
        tool=row["tool"],
        effect=Effect(row["effect"]),
        status=TraceStatus(row["status"]),
        step=parse_call_id(call)[0],
        wave=int(row["wave"]),
        attempt=int(row["attempt"]),
        args_hash=row["hash"],
        lanes=tuple(json.loads(row["lanes"])),
        dispatched_at_ms=int(row.get("dispatched_at", 0)),
        started_at_ms=int(row.get("started_at", 0)),
        ended_at_ms=int(row.get("ended_at", 0)),
        latency_ms=int(row.get("latency", 0)),
        lane_wait_ms=_lane_wait_ms(row),
        owner=row.get("owner", ""),
        repairs=int(row.get("repairs", 0)),
        retryable=row.get("retryable") == "1",
        detail=row.get("detail", ""),
        park=row.get("park", "") if row["status"] == TraceStatus.PARKED else "",
        stop=row.get("stop", "").strip() if row["status"] == TraceStatus.PARKED and row.get("park") == "hold" else "",
    )


def _lane_wait_ms(row: Mapping[str, str]) -> int:
    since, until = row.get("waits_at"), row.get("dispatched_at")
    return max(0, int(until) - int(since)) if since and until else 0


def outside_results(fields: Mapping[str, str]) -> dict[str, str]:
    """Return how the non-read calls that were completed from outside ended: call -> `success`,
    `failure` or `unknown`."""
    calls = [field.removesuffix(":completed_by") for field in fields if field.endswith(":completed_by")]
    kinds = {TraceStatus.COMPLETED: "success", TraceStatus.FAILED: "failure", TraceStatus.UNKNOWN: "unknown"}
    return {
        call: kinds[TraceStatus(fields[f"{call}:status"])]
        for call in calls
        if fields[f"{call}:status"] in kinds and fields[f"{call}:effect"] != Effect.READ_ONLY
    }


class Transcript(NamedTuple):
    """The trace of a turn, the receipts of its inputs, and its messages, as Redis keeps them."""

    trace: Mapping[str, str]
    receipts: Mapping[str, str]
    messages: tuple[str, ...]


class RedisTranscripts:
    """A reader of one turn's messages and calls, at most `MAX_READ_MESSAGES` at once. The result is empty if Redis does
    not have the turn."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    def messages(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """Return the turn's messages, as its history has them."""
        return self._newest_messages(session_id, turn_id, MAX_READ_MESSAGES)

    def calls(
        self, session_id: str, turn_id: str, limit: int | None = None, after: str | None = None
    ) -> tuple[tuple[ToolTraceEntry, ...], tuple[Message, ...]]:
        """Return the trace of each call, and the messages with their arguments and results.

        The messages may include those of other calls.

        limit, after   selects the first `limit` calls after this one. A small page reads only those
        """
        # Read the trace first: a result that moves into the history meanwhile is then found twice rather than missed.
        key = self._scripts.keys.named("trace", session_id, turn_id)
        is_few = limit is not None and limit <= FEW_CALLS
        fields = self._hash(key) if limit is None or limit > FEW_CALLS else self._fields_of_few(key, limit, after)
        page = _page_of(read_trace(fields), limit, after)
        if not page:
            return (), ()
        results = read_results(fields)
        if is_few:
            messages = (*results, *self._newest_messages(session_id, turn_id, 2 * len(page) + FEW_CALLS))
            if _has_all(page, messages):
                return page, messages
        return page, (*results, *self.messages(session_id, turn_id))

    def _newest_messages(self, session_id: str, turn_id: str, limit: int) -> tuple[Message, ...]:
        found = self._transcript(session_id, turn_id, limit).messages
        messages = (Message.from_stored(item) for item in found)
        return tuple(message for message in messages if message.turn == turn_id)

    @script("turn_transcript", most=Parameter("limit"), SAID=Transcript)
    def _transcript(self, session_id: str, turn_id: str, limit: int) -> Transcript: ...

    def _fields_of_few(self, key: str, limit: int, after: str | None) -> dict[str, str]:
        """Return the fields of the first calls after `after`, which are mostly those that follow it in its step."""
        step, index = (0, 0) if after is None else parse_call_id(after)
        found = self._fields_of(key, [call_id(step, index + at) for at in range(1, limit + 1)])
        if after is not None and sum(name.endswith(":status") for name in found) == limit:
            return found
        names = cast("list[str]", self._scripts.client.hkeys(key))
        calls = {name.partition(":")[0] for name in names}
        behind = sorted(calls, key=parse_call_id) if after is None else _after(calls, after)
        return self._fields_of(key, behind[:limit])

    def _fields_of(self, key: str, calls: list[str]) -> dict[str, str]:
        names = [f"{call}:{part}" for call in calls for part in TRACE_FIELDS]
        if not names:
            return {}
        values = cast("list[str | None]", self._scripts.client.hmget(key, names))
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    def _hash(self, key: str) -> dict[str, str]:
        return cast("dict[str, str]", self._scripts.client.hgetall(key))


def _after(calls: Iterable[str], after: str) -> list[str]:
    place = parse_call_id(after)
    return sorted((call for call in calls if parse_call_id(call) > place), key=parse_call_id)


def _page_of(trace: tuple[ToolTraceEntry, ...], limit: int | None, after: str | None) -> tuple[ToolTraceEntry, ...]:
    beyond = (-1, -1) if after is None else parse_call_id(after)
    return tuple(entry for entry in trace if parse_call_id(entry.call_id) > beyond)[:limit]


def _has_all(page: tuple[ToolTraceEntry, ...], messages: tuple[Message, ...]) -> bool:
    """Return whether every call of the page has its arguments here, and its result if it has one."""
    requested = {call.id for message in messages for call in message.calls}
    answered = {message.call_id for message in messages if message.role == "tool"}
    return all(
        entry.call_id in requested and (entry.call_id in answered or not entry.status.is_settled) for entry in page
    )


class RedisRuntime:
    """A reader of one turn's accumulated state, and the owner of its write gate."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._keys = scripts.keys

    def fields(self, session_id: str, turn_id: str) -> dict[str, str]:
        """Return the turn's hash. Raises TurnNotFound if Redis does not have the turn, or no longer."""
        return as_mapping(self._of(session_id, turn_id, ("HGETALL", self._keys.turn(session_id, turn_id))))

    def usage(self, session_id: str, turn_id: str) -> TokenUsage:
        key = self._keys.named("budget", session_id, turn_id)
        return read_usage(as_mapping(self._of(session_id, turn_id, ("HGETALL", key))))

    def sources(self, session_id: str, turn_id: str) -> list[dict[str, str]]:
        """Return the citations and rendered paths of the turn's tools."""
        key = self._keys.named("sources", session_id, turn_id)
        return [json.loads(row) for row in self._of(session_id, turn_id, ("LRANGE", key, "0", "-1"))]

    def blocked(self, session_id: str, turn_id: str) -> frozenset[str]:
        key = self._keys.named("blocked", session_id, turn_id)
        return frozenset(self._of(session_id, turn_id, ("SMEMBERS", key)))

    def results(self, session_id: str, turn_id: str) -> dict[str, str]:
        """Return call id -> the text that the model read as its result, for the calls of this turn that have ended."""
        self.fields(session_id, turn_id)
        _, messages = RedisTranscripts(self._scripts).calls(session_id, turn_id)
        return {message.call_id: message.content for message in messages if message.role == "tool"}

    def newest_text(self, session_id: str, turn_id: str) -> str:
        """Return the newest text of the turn's model. For a turn that was cut off, this is the last text."""
        turn = self.fields(session_id, turn_id)
        if "ending" in turn:
            return turn.get("last_agent_message") or turn.get("text", "")
        return read_newest_text(self._scripts.client, self._keys, session_id, turn_id, turn.get("isolated") == "1")

    def _of(self, session_id: str, turn_id: str, read: tuple[str, ...]) -> Any:
        """Return the reply to a read. Raises TurnNotFound if Redis does not have the turn, because every reply would be
        empty."""
        known, reply = self._scripts.client.many([("EXISTS", self._keys.turn(session_id, turn_id)), read])
        if not known:
            raise TurnNotFound(
                f"turn {turn_id!r} of session {session_id!r} is not in Redis; it may have expired there, and "
                "`client.handle(turn_id).result()` still has its result"
            )
        return reply

    @script("gate_shut", SHUT=True, ALREADY=False, GONE=False)
    def shut_gate(self, session_id: str, turn_id: str, by: str) -> bool:
        """Close the write gate. Returns False if it was already closed, or if the turn has ended."""
        ...
