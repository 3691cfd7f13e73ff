"""What was said and done in a turn, as far as Redis still has it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

from brainq.contracts.ids import call_id, call_place
from brainq.contracts.message import Message
from brainq.contracts.trace import ToolTraceEntry
from brainq.state.conversations import MOST_READ
from brainq.state.keys import Keys
from brainq.state.trace_rows import PARTS, read_results, read_trace
from brainq.state.typed_scripts import Scripts

FEW = 32
"""Up to so many calls are read alone, and not with all others of their turn."""


@dataclass(frozen=True, slots=True)
class RedisTranscripts:
    """Reads of one turn, each at most `MOST_READ` messages; empty for a turn that Redis does not know."""

    scripts: Scripts
    keys: Keys

    def said(self, session_id: str, turn_id: str) -> tuple[Message, ...]:
        """The turn's messages, as its history has them."""
        return self._said(session_id, turn_id, MOST_READ)

    def calls(
        self, session_id: str, turn_id: str, limit: int | None = None, after: str | None = None
    ) -> tuple[tuple[ToolTraceEntry, ...], tuple[Message, ...]]:
        """The trace of each call, and the messages with their arguments and results; perhaps some of others, too.

        limit, after   the first so many behind this call. Of a few no more is read than of those
        """
        # First the trace: a result that moves into the history meanwhile is met twice, and not missed.
        key = self.keys.named("trace", session_id, turn_id)
        is_few = limit is not None and limit <= FEW
        fields = self._hash(key) if limit is None or limit > FEW else self._fields_of_few(key, limit, after)
        page = _page(read_trace(fields), limit, after)
        if not page:
            return (), ()
        results = read_results(fields)
        if is_few:
            said = (*results, *self._said(session_id, turn_id, 2 * len(page) + FEW))
            if _has_all(page, said):
                return page, said
        return page, (*results, *self.said(session_id, turn_id))

    def _said(self, session_id: str, turn_id: str, most: int) -> tuple[Message, ...]:
        reply = self.scripts.turn_said(session_id, turn_id, most=most)
        messages = (Message.model_validate_json(item) for item in reply.messages)
        return tuple(message for message in messages if message.turn == turn_id)

    def _fields_of_few(self, key: str, limit: int, after: str | None) -> dict[str, str]:
        """The fields of the first calls behind `after`: mostly those that follow it in its step."""
        step, index = (0, 0) if after is None else call_place(after)
        found = self._fields_of(key, [call_id(step, index + at) for at in range(1, limit + 1)])
        if after is not None and sum(name.endswith(":status") for name in found) == limit:
            return found
        names = cast("list[str]", self.scripts.client.hkeys(key))
        calls = {name.partition(":")[0] for name in names}
        behind = sorted(calls, key=call_place) if after is None else _behind(calls, after)
        return self._fields_of(key, behind[:limit])

    def _fields_of(self, key: str, calls: list[str]) -> dict[str, str]:
        names = [f"{call}:{part}" for call in calls for part in PARTS]
        if not names:
            return {}
        values = cast("list[str | None]", self.scripts.client.hmget(key, names))
        return {name: value for name, value in zip(names, values, strict=True) if value is not None}

    def _hash(self, key: str) -> dict[str, str]:
        return cast("dict[str, str]", self.scripts.client.hgetall(key))


def _behind(calls: Iterable[str], after: str) -> list[str]:
    place = call_place(after)
    return sorted((call for call in calls if call_place(call) > place), key=call_place)


def _page(
    trace: tuple[ToolTraceEntry, ...], limit: int | None, after: str | None
) -> tuple[ToolTraceEntry, ...]:
    beyond = (-1, -1) if after is None else call_place(after)
    return tuple(entry for entry in trace if call_place(entry.call_id) > beyond)[:limit]


def _has_all(page: tuple[ToolTraceEntry, ...], said: tuple[Message, ...]) -> bool:
    """Whether every call of the page has its arguments here, and its result where it has one."""
    asked = {call.id for message in said for call in message.calls}
    told = {message.call_id for message in said if message.role == "tool"}
    return all(
        entry.call_id in asked and (entry.call_id in told or not entry.status.is_settled) for entry in page
    )
