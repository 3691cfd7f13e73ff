"""Conversations: the messages of a session with their estimated sizes, its earlier turns, and the history that a new
session may begin with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from brainq.contracts.base import check_json
from brainq.contracts.message import Attachment, Message
from brainq.errors import InvalidInput

MAX_HISTORY_MESSAGES = 1_000  # messages; a session's history in Redis has at most twice as many
MAX_HISTORY_CHARS = 1_000_000  # the same as for one user message
EARLIER_TURN_PREFIX = "earlier-"
"""The prefix of turn ids for messages that belong to no turn of this session."""
OPENING_PLACEHOLDER = "[The user opened the conversation and has not said anything yet.]"
_ENGINE_FIELDS = ("turn", "step", "extra")


@dataclass(frozen=True, slots=True)
class Conversation:
    """The messages of a session, oldest first. Adding messages does not read the others again.

    Create one with `EMPTY_CONVERSATION.plus`.

    sizes: the estimated tokens of each message.
    tokens: the sum of `sizes`.
    begins: the position of each turn's first message, by turn id.
    older: the number of messages before these that were not read.
    """

    messages: tuple[Message, ...] = ()
    sizes: tuple[int, ...] = ()
    tokens: int = 0
    begins: Mapping[str, int] = field(default_factory=dict[str, int])
    older: int = 0

    @property
    def length(self) -> int:
        """The number of all messages, including those that were not read."""
        return self.older + len(self.messages)

    def begin_of(self, turn_id: str) -> int:
        """Return the position of this turn's first message, or the end if it has none."""
        return self.begins.get(turn_id, len(self.messages))

    def of_turn(self, turn_id: str) -> tuple[Message, ...]:
        return tuple(message for message in self.messages[self.begin_of(turn_id) :] if message.turn == turn_id)

    def plus(self, messages: Sequence[Message], sizes: Sequence[int]) -> Conversation:
        """Return the conversation with these messages added."""
        if not messages:
            return self
        return Conversation(
            (*self.messages, *messages),
            (*self.sizes, *sizes),
            self.tokens + sum(sizes),
            _turn_begins(messages, len(self.messages), self.begins),
            self.older,
        )

    def without_oldest(self, count: int, *, older: int) -> Conversation:
        """Return the conversation without its `count` oldest messages.

        `older` is the number of messages that come before the remaining ones.
        """
        kept, sizes = self.messages[count:], self.sizes[count:]
        return Conversation(kept, sizes, sum(sizes), _turn_begins(kept, 0, {}), older)

    def of_newest(self, most: int) -> Conversation:
        """Return the conversation with at most the `most` newest messages. The others count as older."""
        over = len(self.messages) - most
        return self if over <= 0 else self.without_oldest(over, older=self.older + over)


EMPTY_CONVERSATION = Conversation()


def _turn_begins(messages: Iterable[Message], offset: int, known: Mapping[str, int]) -> Mapping[str, int]:
    places = dict(known)
    for place, message in enumerate(messages, offset):
        places.setdefault(message.turn, place)
    return places


class EarlierTurn(NamedTuple):
    """The part of a turn that SQL keeps after Redis has dropped it: the user's message with its files, and the
    answer."""

    user: str
    assistant: str
    attachments: tuple[Attachment, ...] = ()


def check_history(messages: tuple[Message, ...]) -> None:
    """Raise InvalidInput if the history is too long, or if a call is not followed by its one result.

    Results must be in the order of the calls. The error names the message.
    """
    if len(messages) > MAX_HISTORY_MESSAGES:
        raise InvalidInput("history", f"it is {len(messages):,} messages; send the newest {MAX_HISTORY_MESSAGES:,}")
    size = sum(_message_size(message) for message in messages)
    if size > MAX_HISTORY_CHARS:
        raise InvalidInput("history", f"it is {size:,} characters; send at most {MAX_HISTORY_CHARS:,}")
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
            raise InvalidInput(field, f"the call {open_calls[0]!r} before it has no result; send one for each call")
        open_calls = [call.id for call in message.calls]
        if len(set(open_calls)) < len(open_calls) or "" in open_calls:
            raise InvalidInput(field, "two of its calls have one id, or one has none; give each its own")
    if open_calls:
        raise InvalidInput("history", f"its last call {open_calls[0]!r} has no result; send one for each call")


def newest_within_limits(messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the newest messages within the limits, beginning with a user's message.

    This is for clients that send the whole conversation each time.
    """
    begin, left = len(messages), MAX_HISTORY_CHARS
    for at in range(len(messages) - 1, -1, -1):
        left -= _message_size(messages[at])
        if left < 0 or len(messages) - at > MAX_HISTORY_MESSAGES:
            return tuple(messages[begin:])
        if messages[at].role == "user":
            begin = at
    return tuple(messages)


def opening_messages(greeting: str | None, history: Sequence[Message]) -> list[Message]:
    """Return the first messages of the session's history. Each message of the user begins an earlier turn."""
    messages = [Message(role="assistant", content=greeting)] if greeting else list(history)
    if not messages:
        return []
    kind = "greeting" if greeting else "history"
    if messages[0].role != "user":
        # The conversation begins with an answer. Services and templates require a user's message before each answer.
        messages.insert(0, Message(role="user", content=OPENING_PLACEHOLDER, extra={"note": "greeting"}))
    opened: list[Message] = []
    number = 0
    for before, message in zip([None, *messages], messages, strict=False):
        number += message.role == "user" and (before is None or before.role != "user")
        turn = f"{EARLIER_TURN_PREFIX}{kind}" if greeting else f"{EARLIER_TURN_PREFIX}{kind}-{number}"
        opened.append(message.model_copy(update={"turn": turn}))
    return opened


def _message_size(message: Message) -> int:
    calls = sum(len(call.name) + len(json.dumps(call.arguments)) for call in message.calls)
    return len(message.content) + calls


def _check_shape(field: str, message: Message) -> None:
    if message.role == "system":
        raise InvalidInput(
            field, "its role is system; a turn takes it as system_prompt, or beside the brain's as skill_context"
        )
    if message.calls and message.role != "assistant":
        raise InvalidInput(field, f"a message of the role {message.role} makes no calls; leave calls out")
    if message.role == "tool" and not message.call_id:
        raise InvalidInput(field, "a result names its call; give call_id")
    if message.attachments and message.role == "assistant":
        raise InvalidInput(field, "a message of the assistant has no attachments; leave them out")
    if message.role != "tool" and not (message.content.strip() or message.calls or message.attachments):
        raise InvalidInput(field, "it is empty; leave the message out")
    for name in _ENGINE_FIELDS:
        if getattr(message, name) != Message.model_fields[name].default:
            raise InvalidInput(field, f"{name!r} is the engine's to set; leave it out")
    check_json(field, message.model_dump())
