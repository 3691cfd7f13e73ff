"""From messages to rows of a transcript: what identifies each, and its place. Pure."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence

from brainq.contracts.message import Message
from brainq.store.text import sql_json, sql_text

_FROM_SQL = "earlier-"  # the engine gives such turns to messages it read back from SQL
_BEFORE, _REPLY, _TOOL, _AFTER = 0, 1, 2, 3
_PLACES = 1_000_000  # more messages than a step has


def earlier_turns(turn_id: str, messages: Sequence[Message]) -> list[str]:
    """The other turns these messages are of."""
    named = {message.turn for message in messages if not message.turn.startswith(_FROM_SQL)}
    return sorted(named - {turn_id, ""})


def archived(
    session_id: str, turn_id: str, messages: Sequence[Message], redact: bool, *, whole: bool
) -> list[dict[str, object]]:
    """The rows of a turn's messages among `messages`; `whole`: messages of no turn are this one's."""
    ours = [message for message in messages if message.turn == turn_id or (whole and not message.turn)]
    ranks, within, said = _ranks(ours), Counter[tuple[int, int]](), Counter[tuple[int, str, str]]()
    rows: list[dict[str, object]] = []
    for message, rank in zip(ours, ranks, strict=True):
        body = _redacted(message) if redact else sql_json(message, exclude_defaults=True)
        digest = "" if message.call_id else hashlib.blake2b(body.encode(), digest_size=16).hexdigest()
        if digest:
            key = (message.step, message.role, digest)
            said[key] += 1
            digest += f".{said[key]}" if said[key] > 1 else ""  # the same words again are another message
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


def _ranks(messages: Sequence[Message]) -> list[int]:
    """Where each message stands in its step: before the reply, the reply, its tool messages, after them.

    A follow-up or a note stands where it is met. Without anything else of its step beside it, as when
    history is archived in two parts, it stands after: the reply was archived with the older part. (Two notes
    of one step that fell into different parts are in no certain order.)
    """
    ranks: list[int] = []
    answered: set[int] = set()
    replies = {message.step for message in messages if message.role == "assistant"}
    for message in messages:
        if message.role == "assistant":
            answered.add(message.step)
            ranks.append(_REPLY)
        elif message.role == "tool":
            ranks.append(_TOOL)
        else:
            comes_first = message.step in replies and message.step not in answered
            ranks.append(_BEFORE if comes_first else _AFTER)
    return ranks


def _index_of(call_id: str) -> int:
    """The place in the model's order that our call ids end in, from 1; 0 for other ids."""
    last = call_id.rpartition("-")[2]
    return int(last) + 1 if last.isdecimal() and len(last) < 6 else 0


def _redacted(message: Message) -> str:
    """That there was a message, and whose."""
    return json.dumps({"role": message.role, "call_id": sql_text(message.call_id)})
