"""The roles of a conversation, as a server's chat template requires them.

Servers of open models render messages with the model's own template. Many templates fail on conversations that OpenAI's
service accepts: with a second system message, two user messages in a row, a user's message directly after a tool's, or
any system message. Every request has the first of these forms; a server may require a stricter one:

    all           one system message, at the beginning; neighbours of one role are one message
    alternating   also: user and assistant alternate, not counting tools and the calls that they answer
    no_system     also: the system message's text begins the first user message
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Any, Literal, get_args

from brainq.adapters.models.attachments import move_behind_results
from brainq.adapters.models.error_body import error_detail
from brainq.contracts.message import Message
from brainq.errors import InvalidInput

Roles = Literal["all", "alternating", "no_system"]
ROLES: tuple[Roles, ...] = get_args(Roles)
_SYSTEM_LABEL = "[System message]\n"
_RESULTS_READ = "I have read these results."  # inserted between a tool's result and the next text of a user
_CONTINUE = "Go on."


def require_roles(field: str, value: str) -> Roles:
    """Return `value` as Roles. Raises InvalidInput naming `field`."""
    for known in ROLES:
        if value == known:
            return known
    raise InvalidInput(field, f"must be one of {', '.join(ROLES)}, got {value!r}")


def to_roles(messages: Iterable[Message], roles: Roles) -> list[Message]:
    """Return the same conversation in `roles`.

    Empty messages are left out, and no call is separated from its result.
    """
    system, conversation = _split_system(messages)
    conversation = move_behind_results(conversation)
    if system and roles == "no_system":
        conversation.insert(0, Message(role="user", content=system))
        system = ""
    conversation = _merge_neighbours(conversation)
    if roles != "all":
        conversation = _alternate(conversation)
    return [Message(role="system", content=system), *conversation] if system else conversation


def stricter_roles(status: int, body: Any, roles: Roles) -> Roles | None:
    """Return the stricter roles that this refusal requires, or None if it is about something else.

    Templates raise errors in their own words, which servers pass on with a status of 400 or 500.
    """
    if status not in (400, 404, 422, 500):
        return None
    text = error_detail(body).message.lower()
    wanted: Roles = "all"
    if "system role" in text and "support" in text:
        wanted = "no_system"
    elif any(words in text for words in ("must alternate", "after role", "strings with length 9")):
        wanted = "alternating"
    return wanted if ROLES.index(wanted) > ROLES.index(roles) else None


def _split_system(messages: Iterable[Message]) -> tuple[str, list[Message]]:
    """Return the text of the leading system messages, and the rest.

    A later system message becomes a labelled user message.
    """
    system: list[str] = []
    conversation: list[Message] = []
    for message in messages:
        if message.role != "system":
            if message.content.strip() or message.calls or message.attachments or message.role == "tool":
                conversation.append(message)
        elif not message.content.strip():
            continue
        elif conversation:
            conversation.append(Message(role="user", content=_SYSTEM_LABEL + message.content))
        else:
            system.append(message.content)
    return "\n\n".join(system), conversation


def _merge_neighbours(messages: Iterable[Message]) -> list[Message]:
    """Return the messages with neighbours of one role merged. Each tool result stays separate."""
    made: list[Message] = []
    for message in messages:
        before = made[-1] if made else None
        if before is None or before.role != message.role or message.role == "tool" or before.calls:
            made.append(message)
            continue
        content = "\n\n".join(text for text in (before.content, message.content) if text.strip())
        files = (*before.attachments, *message.attachments)
        made[-1] = before.model_copy(
            update={"content": content, "calls": message.calls, "attachments": files, "reasoning": message.reasoning}
        )
    return made


def _alternate(messages: Iterable[Message]) -> list[Message]:
    """Return a conversation that begins with a user, in which user and assistant alternate.

    Missing messages are inserted.
    """
    missing: Mapping[str, Message] = {
        "user": Message(role="assistant", content=_RESULTS_READ),
        "assistant": Message(role="user", content=_CONTINUE),
    }
    last = "assistant"
    made: list[list[Message]] = []
    for message in messages:
        if message.role == "tool" or message.calls:
            made.append([message])
            continue
        made.append([missing[last], message] if message.role == last else [message])
        last = message.role
    return list(chain.from_iterable(made))
