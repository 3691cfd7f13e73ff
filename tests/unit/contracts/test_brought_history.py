"""What of a long conversation may be brought along."""

from __future__ import annotations

from brainq.contracts.conversation import MAX_HISTORY_CHARS, MAX_HISTORY_MESSAGES, newest_within_limits
from brainq.contracts.message import Message


def talk(pairs: int, text: str = "x") -> list[Message]:
    return [Message(role=role, content=text) for _ in range(pairs) for role in ("user", "assistant")]


def test_all_of_it_where_it_fits() -> None:
    said = [Message(role="assistant", content="Hello"), *talk(3)]
    assert newest_within_limits(said) == tuple(said)
    assert newest_within_limits([]) == ()


def test_the_newest_from_a_users_message_on() -> None:
    said = talk(MAX_HISTORY_MESSAGES)
    assert newest_within_limits(said) == tuple(said[-MAX_HISTORY_MESSAGES:])
    assert newest_within_limits([*said, Message(role="user", content="y")])[0].role == "user"
    long = talk(3, "x" * (MAX_HISTORY_CHARS // 3))
    assert newest_within_limits(long) == tuple(long[-2:])
    assert newest_within_limits(talk(1, "x" * MAX_HISTORY_CHARS)) == ()
