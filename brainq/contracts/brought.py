"""A conversation that a session's first turn brings along: what may stand in it, and how it enters the history."""

from __future__ import annotations

import json
from collections.abc import Sequence

from brainq.contracts.message import Message
from brainq.contracts.plain_json import check_json
from brainq.errors import InvalidInput

MAX_BROUGHT = 1_000  # messages; a session's history in Redis has twice as many at most
MAX_BROUGHT_CHARS = 1_000_000  # as of one user message
EARLIER = "earlier-"
"""Begins the turn ids of messages that no turn of this session said."""
OPENED = "[The user opened the conversation and has not said anything yet.]"
_OURS = ("turn", "step", "extra")


def check_history(messages: tuple[Message, ...]) -> None:
    """Raises InvalidInput naming the message: each call has its one result behind it, in the order of the calls."""
    if len(messages) > MAX_BROUGHT:
        raise InvalidInput("history", f"it is {len(messages):,} messages; send the newest {MAX_BROUGHT:,}")
    size = sum(_size(message) for message in messages)
    if size > MAX_BROUGHT_CHARS:
        raise InvalidInput("history", f"it is {size:,} characters; send at most {MAX_BROUGHT_CHARS:,}")
    open_calls: list[str] = []
    for at, message in enumerate(messages):
        field = f"history[{at}]"
        _check_shape(field, message)
        if message.role == "tool":
            if not open_calls or message.call_id != open_calls[0]:
                wanted = f"the result of {open_calls[0]!r}" if open_calls else "no result"
                raise InvalidInput(
                    field,
                    f"it is the result of {message.call_id!r}, and {wanted} is due; send results behind the message "
                    "that made the calls, in the order of its calls",
                )
            del open_calls[0]
            continue
        if open_calls:
            raise InvalidInput(
                field, f"the call {open_calls[0]!r} before it has no result; send one for each call"
            )
        open_calls = [call.id for call in message.calls]
        if len(set(open_calls)) < len(open_calls) or "" in open_calls:
            raise InvalidInput(field, "two of its calls have one id, or one has none; give each its own")
    if open_calls:
        raise InvalidInput(
            "history", f"its last call {open_calls[0]!r} has no result; send one for each call"
        )


def newest_that_fit(messages: Sequence[Message]) -> tuple[Message, ...]:
    """All of them where they may be brought along; else the newest that may, from a user's message on. For clients that
    send the whole conversation each time, however long it is."""
    begin, left = len(messages), MAX_BROUGHT_CHARS
    for at in range(len(messages) - 1, -1, -1):
        left -= _size(messages[at])
        if left < 0 or len(messages) - at > MAX_BROUGHT:
            return tuple(messages[begin:])
        if messages[at].role == "user":
            begin = at
    return tuple(messages)


def opening_of(greeting: str | None, history: Sequence[Message]) -> list[Message]:
    """The messages that the session's history begins with. Each of the user's begins an earlier turn."""
    said = [Message(role="assistant", content=greeting)] if greeting else list(history)
    if not said:
        return []
    kind = "greeting" if greeting else "history"
    if said[0].role != "user":
        # An answer to nobody: services and templates want a user's message before each of the assistant's.
        said.insert(0, Message(role="user", content=OPENED, extra={"note": "greeting"}))
    opened: list[Message] = []
    number = 0
    for before, message in zip([None, *said], said, strict=False):
        number += message.role == "user" and (before is None or before.role != "user")
        turn = f"{EARLIER}{kind}" if greeting else f"{EARLIER}{kind}-{number}"
        opened.append(message.model_copy(update={"turn": turn}))
    return opened


def _size(message: Message) -> int:
    calls = sum(len(call.name) + len(json.dumps(call.arguments)) for call in message.calls)
    return len(message.content) + calls


def _check_shape(field: str, message: Message) -> None:
    if message.role == "system":
        raise InvalidInput(
            field,
            "its role is system; a turn takes it as system_prompt, or beside the brain's as skill_context",
        )
    if message.calls and message.role != "assistant":
        raise InvalidInput(field, f"a message of the role {message.role} makes no calls; leave calls out")
    if message.role == "tool" and not message.call_id:
        raise InvalidInput(field, "a result names its call; give call_id")
    if message.attachments and message.role == "assistant":
        raise InvalidInput(field, "a message of the assistant has no attachments; leave them out")
    if message.role != "tool" and not (message.content.strip() or message.calls or message.attachments):
        raise InvalidInput(field, "it is empty; leave the message out")
    for name in _OURS:
        if getattr(message, name) != Message.model_fields[name].default:
            raise InvalidInput(field, f"{name!r} is the engine's to set; leave it out")
    check_json(field, message.model_dump())
