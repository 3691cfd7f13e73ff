"""From messages to rows of a transcript: what identifies each, and its place. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from brainq.contracts.message import Message
from brainq.store.text import sql_json, sql_text

_FROM_SQL = "earlier-"  # the engine gives such turns to messages it read back from SQL
_BEFORE, _REPLY, _TOOL, _AFTER = 0, 1, 2, 3
_PLACES = 1_000_000  # more messages than a step has

Place = tuple[int, int, str]
"""Where a message stands in its turn: step, place in the step, digest."""


def earlier_turns(turn_id: str, messages: Sequence[Message]) -> list[str]:
    """The other turns these messages are of."""
    named = {message.turn for message in messages if not message.turn.startswith(_FROM_SQL)}
    return sorted(named - {turn_id, ""})


def archived(
    session_id: str, turn_id: str, messages: Sequence[Message], redact: bool
) -> list[dict[str, Any]]:
    """The rows of a turn's messages among `messages`."""
    within, said = Counter[tuple[int, int]](), Counter[tuple[int, str, str]]()
    rows: list[dict[str, Any]] = []
    for message in _of(turn_id, messages):
        body = _redacted(message) if redact else sql_json(message, exclude_defaults=True)
        digest = "" if message.call_id else hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        if digest:
            key = (message.step, message.role, digest)
            said[key] += 1
            digest += f".{said[key]}" if said[key] > 1 else ""  # the same words again are another message
        rank = _rank(message)
        within[message.step, rank] += 1
        nth = _index_of(message.call_id) or within[message.step, rank]
        rows.append(
            {
                "turn_id": turn_id,
                "session_id": session_id,
                "step": message.step,
                "role": message.role,
                "call_id": message.call_id,
                "digest": digest,
                "place": rank * _PLACES + nth,
                "redacted": redact,
                "message_json": body,
            }
        )
    return rows


def place_of(row: Any) -> Place:
    return row["step"], row["place"], row["digest"]


def behind(turn_id: str, messages: Sequence[Message], last: Place | None) -> list[Message]:
    """The turn's messages among these that stand behind `last` (None: all of them), in the order of a transcript."""
    ours = _of(turn_id, messages)
    places = [place_of(row) for row in archived("", turn_id, ours, redact=False)]
    order = sorted(range(len(ours)), key=places.__getitem__)
    return [ours[at] for at in order if last is None or places[at] > last]


def _of(turn_id: str, messages: Sequence[Message]) -> list[Message]:
    """What a review left in its session's conversation is not what was said in the review."""
    return [message for message in messages if message.turn == turn_id and _mark(message, "note") != "review"]


def _rank(message: Message) -> int:
    """Where a message stands in its step: input that the step read, the reply, its tool messages, notes after them.

    It follows from the message alone: a history is archived in parts, and a part does not know its neighbours.
    """
    match message.role:
        case "assistant":
            return _REPLY
        case "tool":
            return _TOOL
        case _:
            return _BEFORE if _mark(message, "input") else _AFTER


def _mark(message: Message, name: str) -> object:
    return (message.extra or {}).get(name)


def _index_of(call_id: str) -> int:
    """The place in the model's order that our call ids end in, from 1; 0 for other ids."""
    last = call_id.rpartition("-")[2]
    return int(last) + 1 if last.isdecimal() and len(last) < 6 else 0


def _redacted(message: Message) -> str:
    """That there was a message, and whose."""
    return json.dumps({"role": message.role, "call_id": sql_text(message.call_id)})
