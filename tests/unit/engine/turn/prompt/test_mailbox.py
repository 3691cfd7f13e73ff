"""Input that came while a turn was at work."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.message import Message
from brainq.contracts.people import TurnInput
from brainq.engine.turn.prompt.request_messages import (
    INPUT_FRAME,
    TurnDrain,
    TurnMailbox,
    frame_input,
    input_messages,
)


def said(number: int, text: str = "And Bergen?", readiness: bool | None = None) -> TurnInput:
    return TurnInput(client_message_id=f"m{number}", text=text, readiness=readiness)


def test_an_empty_mailbox_gives_nothing() -> None:
    assert TurnMailbox().drain() == TurnDrain((), None)


def test_a_drained_mailbox_is_empty() -> None:
    mailbox = TurnMailbox([said(1, readiness=True), said(2)])

    assert len(mailbox) == 2
    assert mailbox.drain() == TurnDrain((said(1, readiness=True), said(2)), True)
    assert len(mailbox) == 0
    assert mailbox.drain() == TurnDrain()


def test_the_same_id_twice_is_one_message_the_first() -> None:
    first, second = said(1, "one"), said(1, "another", readiness=False)
    assert TurnMailbox([first, said(2), second]).drain() == TurnDrain((first, said(2)), None)


@pytest.mark.parametrize(
    ("readiness", "newest"),
    [
        ([None, None], None),
        ([True, None, None], True),
        ([True, False], False),
        ([False, True, None], True),
        ([True, False, None, None], False),
    ],
)
def test_the_newest_readiness_that_was_said_wins(readiness: list[bool | None], newest: bool | None) -> None:
    inputs = [said(number, readiness=ready) for number, ready in enumerate(readiness)]
    assert TurnMailbox(inputs).drain().readiness is newest


inputs = st.builds(
    TurnInput,
    client_message_id=st.integers(0, 20).map(str),
    text=st.text(max_size=20),
    readiness=st.none() | st.booleans(),
    merged=st.booleans(),
)


@given(st.lists(inputs))
def test_each_input_is_drained_once_in_order_and_each_with_words_is_one_message(items: list[TurnInput]) -> None:
    drain = TurnMailbox(items).drain()
    ids = [item.client_message_id for item in drain.inputs]

    assert ids == list(dict.fromkeys(item.client_message_id for item in items))
    ready = [item.readiness for item in drain.inputs if item.readiness is not None]
    assert drain.readiness is (ready[-1] if ready else None)
    messages = input_messages(drain, "t-1", 3)
    with_words = [item for item in drain.inputs if item.text.strip()]
    assert [message.content for message in messages] == [item.text for item in with_words]
    assert [(message.extra or {})["input"] for message in messages] == [item.client_message_id for item in with_words]
    assert {(message.role, message.turn, message.step) for message in messages} <= {("user", "t-1", 3)}
    # What is stored and read again is framed as it would have been at once.
    again = [Message.model_validate_json(message.model_dump_json(exclude_defaults=True)) for message in messages]
    assert [frame_input(message) for message in again] == [frame_input(message) for message in messages]


def test_input_says_that_the_task_goes_on_and_merged_input_does_not() -> None:
    late, merged = input_messages(
        TurnDrain((said(1), TurnInput(client_message_id="m2", text="Also Oslo.", merged=True))), "t-1", 2
    )

    assert late == Message(role="user", content="And Bergen?", turn="t-1", step=2, extra={"input": "m1"})
    assert merged.extra == {"input": "m2", "merged": True}
    assert frame_input(late) == late.model_copy(update={"content": f"And Bergen?{INPUT_FRAME}"})
    assert frame_input(merged) is merged


@pytest.mark.parametrize(
    "message",
    [
        Message(role="user", content="Hi"),
        Message(role="user", content="Pack", extra={"note": "context"}),
        Message(role="assistant", content="Hello"),
    ],
)
def test_other_messages_stay_as_they_are(message: Message) -> None:
    assert frame_input(message) is message
