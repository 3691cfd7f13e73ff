"""From messages to rows of a transcript."""

from __future__ import annotations

from brainq.contracts.message import Message
from brainq.store.conversation import archived, earlier_turns


def said(role: str, content: str = "", step: int = 0, call_id: str = "", turn: str = "turn-1") -> Message:
    return Message.model_validate(
        {"role": role, "content": content, "step": step, "call_id": call_id, "turn": turn}
    )


def keys(messages: list[Message], redact: bool = False) -> list[tuple[object, ...]]:
    rows = archived("s1", "turn-1", messages, redact, whole=True)
    return [(row["step"], row["role"], row["call_id"], row["digest"]) for row in rows]


def places(messages: list[Message]) -> list[str]:
    rows = archived("s1", "turn-1", messages, False, whole=True)
    order = sorted(range(len(rows)), key=lambda at: (rows[at]["step"], rows[at]["place"]))
    return [messages[at].content for at in order]


def test_every_message_has_a_key_of_its_own() -> None:
    messages = [
        said("user", "go"),
        said("assistant", "a", 1),
        said("tool", "x", 1, "c1-0"),
        said("tool", "x", 1, "c1-1"),
        said("user", "note", 1),
        said("user", "note", 1),
        said("user", "other", 1),
    ]

    assert len(set(keys(messages))) == len(set(keys(messages, redact=True))) == len(messages)
    assert keys(messages) == keys(list(messages))


def test_a_message_keeps_its_key_in_another_company() -> None:
    note, reply = said("user", "note", 2), said("assistant", "a", 2)

    assert keys([note, reply])[0] == keys([note])[0]


def test_messages_stand_in_the_order_they_were_given() -> None:
    messages = [
        said("user", "go"),
        said("user", "before", 1),
        said("assistant", "reply", 1),
        *(said("tool", f"result {n}", 1, f"c1-{n}") for n in range(12)),
        said("user", "after", 1),
        said("assistant", "answer", 2),
    ]

    assert places(messages) == [message.content for message in messages]


def test_what_stands_alone_in_its_step_comes_after_the_reply() -> None:
    rows = [
        *archived("s1", "turn-1", [said("assistant", "reply", 3)], False, whole=True),
        *archived("s1", "turn-1", [said("user", "note", 3)], False, whole=True),
    ]

    assert [row["role"] for row in sorted(rows, key=lambda row: str(row["place"]))] == ["assistant", "user"]


def test_only_the_turns_own_messages_are_taken() -> None:
    messages = [
        said("user", "old", turn="earlier-0"),
        said("user", "other", turn="turn-0"),
        said("user", "mine"),
        said("system", "nobody's", turn=""),
    ]

    assert [row["role"] for row in archived("s1", "turn-1", messages, False, whole=True)] == [
        "user",
        "system",
    ]
    assert earlier_turns("turn-1", messages) == ["turn-0"]
    assert len(archived("s1", "turn-0", messages, False, whole=False)) == 1


def test_a_redacted_row_says_that_there_was_a_message_and_whose() -> None:
    secret = said("tool", "secret", 1, "c1-0")
    (row,) = archived("s1", "turn-1", [secret], True, whole=True)

    assert row["message_json"] == '{"role": "tool", "call_id": "c1-0"}'
    assert keys([said("user", "yes")], redact=True) == keys([said("user", "no")], redact=True)
