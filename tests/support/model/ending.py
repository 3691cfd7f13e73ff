"""The conditions at the end of a healed schedule."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from brainq.contracts.message import Message
from brainq.contracts.rows import InputRow
from tests.support.model.auxiliary import inputs_in
from tests.support.model.client import pairs
from tests.support.model.known import Known
from tests.support.model.rules import require
from tests.support.model.scripts import CLOCK

if TYPE_CHECKING:
    from tests.support.model.schedule import Schedule

_WITHOUT_END = """
local left = {}
for _, key in ipairs(redis.call('KEYS', '*')) do
  if redis.call('PTTL', key) == -1 then left[#left + 1] = key end
end
return left
"""


def check_ending(schedule: Schedule) -> None:
    """Raise BrokenRule unless every turn ended correctly and left nothing."""
    client, keys = schedule.client, schedule.keys
    turns = [known for known in schedule.rules.turns.values() if known.state]  # the others were refused
    sessions = list(dict.fromkeys(known.session_id for known in turns))
    names = [keys.turn(known.session_id, known.turn_id) for known in turns]
    commands: list[Any] = [("EVAL", _WITHOUT_END, 0)]
    commands += [("LRANGE", keys.of_session(session, "history"), 0, -1) for session in sessions]
    replies = iter(client.many(commands))
    left = [key for key in next(replies) if key != CLOCK]
    require(not left, "keys without a lifetime are left", *left)
    for process in schedule.processes:
        process.visits.check_threads()
    read: list[str] = []
    for session, history in zip(sessions, replies, strict=True):
        read += _check_history(session, history)
    parts = [
        command
        for name in names
        for command in (
            ("XRANGE", name + ":events", "-", "+"),
            ("EXISTS", name + ":result"),
            ("HGETALL", name + ":receipts"),
            ("LRANGE", name + ":history", 0, -1),
        )
    ]
    found = client.many(parts)
    receipts: dict[tuple[str, str], str] = {}
    for place, known in enumerate(turns):
        events, has_result, told, history = found[4 * place : 4 * place + 4]
        _check_events(known.turn_id, events)
        require(has_result == 1, "a turn ended without a result", known.turn_id)
        receipts |= {(known.turn_id, name): word for name, word in pairs(told).items()}
        read += _check_history(known.turn_id, history)
        _check_calls(known, schedule.functions.writes)
    _check_inputs(schedule, read, receipts)


def _check_events(turn_id: str, events: list[tuple[str, list[str]]]) -> None:
    numbers = [event[0] for event in events]
    require(numbers == [f"{n}-0" for n in range(1, len(events) + 1)], "events have gaps", turn_id, numbers)
    kinds = [event[1][1] for event in events]
    require(kinds.count("result") == 1 and kinds[-1] == "result", "not one final event", turn_id, kinds)
    require(kinds.count("turn.closing") == 1, "a turn closed more than once", turn_id, kinds)
    require(kinds.count("turn.diff") <= 1, "more than one diff", turn_id, kinds)


def _check_calls(known: Known, writes: set[str]) -> None:
    """Require that no write that had begun is reported as not run or cancelled."""
    for status in ("cancelled", "denied"):
        for call in known.calls_that(status):
            holder = f"{known.session_id} {known.turn_id} {call}"
            require(holder not in writes, f"a write that had begun is {status}", holder)


def _check_history(of: str, items: list[str]) -> list[str]:
    """Check that each call has one message, in order, right after its reply, and that a turn begins once.

    Returns what was read.
    """
    owed: list[str] = []
    begun: list[str] = []
    read: list[str] = []
    for item in items:
        message: dict[str, Any] = json.loads(item)
        if message["role"] == "tool":
            due = owed.pop(0) if owed else None
            require(message["call_id"] == due, "a tool message out of order", of, message["call_id"], due)
            continue
        require(not owed, "calls without a message", of, owed, "before", message)
        if message["role"] == "assistant":
            owed = [call["id"] for call in cast(list[dict[str, str]], message.get("calls", []))]
        elif message.get("extra"):
            read += inputs_in(Message.model_validate_json(item))
        elif message["content"] == "do":
            require(message["turn"] not in begun, "a turn began twice", message["turn"])
            begun.append(message["turn"])
    require(not owed, "calls without a message at the end", of, owed)
    return read


def _check_inputs(schedule: Schedule, read: list[str], receipts: dict[tuple[str, str], str]) -> None:
    """Check that every input was read once, at the step in its receipt, or became a turn that ended, or was refused."""
    due: list[str] = []
    for row in schedule.inputs.rows.values():
        told = receipts.get((row.turn_id, row.client_message_id), "")
        if row.state == "consumed":
            require(told == f"consumed {row.step}", "SQL and the receipt differ", row, told)
            if row.text:
                due.append(f"{row.client_message_id}@{row.turn_id}@{row.step}")
        else:
            require(told in ("", "bounced"), "an input was read, but SQL does not know", row, told)
            _check_bounced(schedule, row)
    require(sorted(due) == sorted(read), "what was sent is not what was read", sorted(due), sorted(read))


def _check_bounced(schedule: Schedule, row: InputRow) -> None:
    if row.state == "refused":
        return
    require(row.state == "bounced", "an input is neither read nor bounced", row)
    turn_id = row.bounced_turn_id or ""
    ended = schedule.accepted.ended.get(turn_id)
    require(ended is not None, "an input was bounced to a turn that did not end", row, ended)
