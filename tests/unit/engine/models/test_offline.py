"""The stand-in model reads calls out of messages, says what they brought, and what it is."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.offline import SELF_DESCRIPTION, read_message, reply
from brainq.engine.models.providers import resolve_model
from brainq.engine.tools.tool import make_tool
from brainq.engine.turn.prompt.request_messages import INPUT_FRAME


def count(item: str) -> int:
    """How many of an item are in stock."""
    raise NotImplementedError


def restock(item: str, amount: int) -> str:
    """Order more of an item."""
    raise NotImplementedError


def read_note(path: str) -> str:
    """Read one note."""
    raise NotImplementedError


def read_mail(sender: str, limit: int = 5) -> str:
    """Read mail."""
    raise NotImplementedError


def list_open_loops() -> str:
    """All of them."""
    raise NotImplementedError


TOOLS = tuple(make_tool(function).spec for function in (count, restock, read_note, read_mail, list_open_loops))


@pytest.mark.parametrize(
    ("message", "wanted"),
    [
        ("count apples", ["count(item='apples')"]),
        ("Counting the apples, please.", ["count(item='apples')"]),
        ("Restock apples by 5, then count apples!", ["restock(item='apples', amount=5)", "count(item='apples')"]),
        ("restock green pears by five", ["restock(item='green pears', amount=5)"]),
        ("restock 12 'sour cream'", ["restock(item='sour cream', amount=12)"]),
        ('restock(item="green pears", amount=-2)', ["restock(item='green pears', amount=-2)"]),
        ("count('a) b') and count pears", ["count(item='a) b')", "count(item='pears')"]),
        ("count pears and count('a')", ["count(item='pears')", "count(item='a')"]),
        ("read the note inbox", ["read_note(path='inbox')"]),
        ("read mail of ann", ["read_mail(sender='ann')"]),
        ("list loops", ["list_open_loops()"]),
        ("restock apples if we have fewer than", ["restock(item='apples', amount=...)"]),
        ("count", ["count(item=...)"]),
        ("What a day!", []),
        ("", []),
        ("restock nan by infinity", ["restock(item='nan', amount=...)"]),
        ("count(", ["count(item=...)"]),
    ],
)
def test_calls_are_read_out_of_a_message(message: str, wanted: list[str]) -> None:
    assert [str(found) for found in read_message(message, TOOLS)] == wanted


def asked(message: str, *later: Message, **more: Any) -> ModelReply:
    provider, model = resolve_model("offline:rules")
    old = Message(role="user", content="restock apples by 1", turn="t0")
    own = Message(role="user", content=message, turn="t1")
    return provider.generate(
        ModelRequest(model=model, messages=(old, own, *later), tools=TOOLS, timeout_s=5.0, turn_id="t1", step=1, **more)
    )


def result(text: str, *, is_error: bool = False) -> Message:
    return Message(role="tool", content=text, call_id="c", turn="t1", is_error=is_error)


def test_a_turn_calls_first_and_then_says_what_came_and_what_it_is() -> None:
    first = asked("count apples and restock pears by 2")
    assert [(call.name, call.arguments) for call in first.calls] == [
        ("count", {"item": "apples"}),
        ("restock", {"item": "pears", "amount": 2}),
    ]
    last = asked("count apples and restock pears by 2", result("3"), result("no pears", is_error=True))
    assert not last.calls
    assert "count(item='apples') said: 3" in last.text
    assert "restock(item='pears', amount=2) failed: no pears" in last.text
    assert SELF_DESCRIPTION in last.text


def test_what_is_written_into_a_running_turn_is_called_after_it() -> None:
    steered = Message(role="user", content="count pears", turn="t1")
    then = asked("count apples", result("3"), steered)
    assert [call.arguments for call in then.calls] == [{"item": "pears"}]


def test_a_note_of_the_runtime_is_no_message_of_the_users() -> None:
    note = Message(role="user", content="count pears", turn="t1", extra={"note": "reflection"})
    assert not asked("count apples", result("3"), note).calls


def test_a_missing_argument_is_asked_for_and_a_message_without_a_tool_gets_their_names() -> None:
    assert "restock needs amount (integer): write restock(item='apples', amount=...)" in asked("restock apples").text
    said = asked("hello")
    assert "count(item), restock(item, amount), read_note(path)" in said.text
    assert SELF_DESCRIPTION in said.text


def test_input_for_a_live_turn_is_obeyed_and_a_note_of_the_runtime_is_not() -> None:
    steered = Message(role="user", content=f"count pears{INPUT_FRAME}", turn="t1", extra={"input": "m1"})
    note = Message(role="user", content="count notes", turn="t1", extra={"note": "ending"})
    first = Message(role="user", content="count apples", turn="t1")
    asked = reply(
        ModelRequest(messages=(first, steered, note), tools=TOOLS, model="m", timeout_s=1.0, turn_id="t1", step=1)
    )
    assert [call.arguments for call in asked.calls] == [{"item": "apples"}, {"item": "pears"}]
