"""What must be true when a schedule is over and healed."""

from __future__ import annotations

import json
from typing import Any, cast

from brainq.state.keys import Keys
from tests.support.model.client import ModelClient
from tests.support.model.rules import require
from tests.support.model.scripts import CLOCK
from tests.support.model.state import Known

_WITHOUT_END = """
local left = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then left[#left + 1] = key end
end
return left
"""


def check_ending(client: ModelClient, keys: Keys, turns: list[Known]) -> None:
    """Raises BrokenRule unless every turn ended in good order and left nothing."""
    sessions = list(dict.fromkeys(known.session_id for known in turns))
    names = [keys.turn(known.session_id, known.turn_id) for known in turns]
    commands: list[Any] = [("EVAL", _WITHOUT_END, 0)]
    commands += [("LRANGE", keys.of_session(session, "history"), 0, -1) for session in sessions]
    commands += [("XRANGE", name + ":events", "-", "+") for name in names]
    commands += [("EXISTS", name + ":result") for name in names]
    replies = client.many(commands)
    left = [key for key in replies[0] if key != CLOCK]
    require(not left, "keys without a lifetime are left", *left)
    for session, history in zip(sessions, replies[1 : len(sessions) + 1], strict=True):
        _check_history(session, [json.loads(message) for message in history])
    first = len(sessions) + 1
    for known, events in zip(turns, replies[first : first + len(turns)], strict=True):
        _check_events(known.turn_id, events)
    for known, has_result in zip(turns, replies[first + len(turns) :], strict=True):
        require(has_result == 1, "a turn ended without a result", known.turn_id)


def _check_events(turn_id: str, events: list[tuple[str, list[str]]]) -> None:
    numbers = [event[0] for event in events]
    require(numbers == [f"{n}-0" for n in range(1, len(events) + 1)], "events have gaps", turn_id, numbers)
    kinds = [event[1][1] for event in events]
    require(kinds.count("result") == 1 and kinds[-1] == "result", "not one final event", turn_id, kinds)
    require(kinds.count("turn.closing") == 1, "a turn closed more than once", turn_id, kinds)


def _check_history(session: str, history: list[dict[str, Any]]) -> None:
    """Each call has one message, in order, right after the reply that made it; a turn begins once."""
    owed: list[str] = []
    begun: list[str] = []
    for message in history:
        if message["role"] == "tool":
            due = owed.pop(0) if owed else None
            require(
                message["call_id"] == due, "a tool message out of order", session, message["call_id"], due
            )
            continue
        require(not owed, "calls without a message", session, owed, "before", message)
        if message["role"] == "assistant":
            owed = [call["id"] for call in cast(list[dict[str, str]], message.get("calls", []))]
        elif message["content"] == "do":
            require(message["turn"] not in begun, "a turn began twice", message["turn"])
            begun.append(message["turn"])
    require(not owed, "calls without a message at the end", session, owed)
