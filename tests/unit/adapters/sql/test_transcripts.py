"""From messages to rows of a transcript."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.sql.repositories.session_log import (
    message_position,
    messages_after,
    other_turn_ids,
    transcript_rows,
)
from brainq.contracts.message import Message


def said(role: str, content: str = "", step: int = 0, call_id: str = "", turn: str = "turn-1") -> Message:
    return Message.model_validate({"role": role, "content": content, "step": step, "call_id": call_id, "turn": turn})


def sent(content: str, step: int) -> Message:
    """Input that this step read."""
    return said("user", content, step).model_copy(update={"extra": {"input": f"m-{content}"}})


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """A turn as its history has it: the question; in each step input, a reply, its results, notes; an end."""
    words = st.sampled_from(["yes", "no"])
    whole, steps = [said("user", draw(words))], draw(st.integers(0, 4))
    for step in range(1, steps + 1):
        count = draw(st.integers(0, 12))
        whole += [sent(f"{draw(words)} {nth}", step) for nth in range(draw(st.integers(0, 3)))]
        whole.append(said("assistant", draw(words), step))
        whole += [said("tool", draw(words), step, f"c{step}-{nth}") for nth in range(count)]
        whole += [said("user", f"{draw(words)} {nth}", step) for nth in range(draw(st.integers(0, 3)))]
    whole += [sent("late", steps + 1)] * draw(st.integers(0, 1))
    whole += [said("assistant", draw(words), steps + 1)] * draw(st.integers(0, 1))
    return whole + [said("user", "[cancelled]", steps + 1)] * draw(st.integers(0, 1))


def parts_what_keeps_its_order_together(whole: list[Message], at: int) -> bool:
    """No compaction does: `split_for_compaction` parts neither the input that one step read nor the notes on it."""
    around = whole[max(0, at - 1) : at + 1]
    kinds = {(message.role, message.step, message.extra is None) for message in around}
    return len(around) == 2 and around[0].role == "user" and len(kinds) == 1


def keys(messages: list[Message], redact: bool = False) -> list[tuple[object, ...]]:
    rows = transcript_rows("s1", "turn-1", messages, redact)
    return [(row["step"], row["role"], row["call_id"], row["digest"]) for row in rows]


def places(messages: list[Message]) -> list[str]:
    rows = transcript_rows("s1", "turn-1", messages, False)
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
        sent("before", 1),
        said("assistant", "reply", 1),
        *(said("tool", f"result {n}", 1, f"c1-{n}") for n in range(12)),
        said("user", "after", 1),
        said("assistant", "answer", 2),
    ]

    assert places(messages) == [message.content for message in messages]


def test_a_message_knows_its_place_without_its_neighbours() -> None:
    whole = [sent("hurry", 3), said("assistant", "reply", 3), said("user", "note", 3)]
    rows = [row for message in whole for row in transcript_rows("s1", "turn-1", [message], False)]

    assert sorted(rows, key=message_position) == rows


@given(conversations(), st.data())
def test_what_was_read_of_a_live_turn_is_the_beginning_of_what_is_read_later(
    whole: list[Message], data: st.DataObject
) -> None:
    read = data.draw(st.integers(0, len(whole)))
    assert messages_after("turn-1", whole[:read], None) == whole[:read]
    # A compaction archives the older part, and may put some of it back before the newer one.
    cut = data.draw(st.integers(0, read).filter(lambda at: not parts_what_keeps_its_order_together(whole, at)))
    back = [message for message in whole[:cut] if data.draw(st.booleans())]
    last = max(map(message_position, transcript_rows("s1", "turn-1", whole[:cut], False)), default=None)
    assert [*whole[:cut], *messages_after("turn-1", [*back, *whole[cut:]], last)] == whole


def test_only_the_turns_own_messages_are_taken() -> None:
    messages = [
        said("user", "old", turn="earlier-0"),
        said("user", "other", turn="turn-0"),
        said("user", "mine"),
        said("system", "nobody's", turn=""),
        said("user", "of a review").model_copy(update={"extra": {"note": "review"}}),
    ]

    assert [
        json.loads(str(row["message_json"]))["content"] for row in transcript_rows("s1", "turn-1", messages, False)
    ] == ["mine"]
    assert other_turn_ids("turn-1", messages) == ["turn-0"]
    assert len(transcript_rows("s1", "turn-0", messages, False)) == 1


def test_a_redacted_row_says_that_there_was_a_message_and_whose() -> None:
    secret = said("tool", "secret", 1, "c1-0")
    (row,) = transcript_rows("s1", "turn-1", [secret], True)

    assert row["message_json"] == '{"role": "tool", "call_id": "c1-0"}'
    assert keys([said("user", "yes")], redact=True) == keys([said("user", "no")], redact=True)
