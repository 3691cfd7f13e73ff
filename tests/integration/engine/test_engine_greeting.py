"""What the assistant said before the user did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, InvalidInput
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.testing import ScriptedProvider, says
from tests.support.pump import Pump

HELLO = "Hello! Boats or sails?"


def greeted(pumps: Callable[..., Pump], **options: Any) -> tuple[Pump, list[list[tuple[str, str]]]]:
    seen: list[list[tuple[str, str]]] = []

    def answer(request: ModelRequest) -> ModelReply:
        seen.append([(message.role, message.content) for message in request.messages if message.role != "system"])
        return says(f"answer {len(seen)}")

    return pumps(Brain("greeting", ScriptedProvider(rules=answer), **options)), seen


def test_a_session_begins_with_its_greeting_and_keeps_it(pumps: Callable[..., Pump]) -> None:
    pump, seen = greeted(pumps)
    pump.finish(pump.submit("s1", "Sails.", greeting=HELLO))
    pump.finish(pump.submit("s1", "Red ones.", greeting="Welcome back!"))
    opened, hello = seen[0][:2]
    assert opened[0] == "user"
    assert hello == ("assistant", HELLO)
    assert seen[0][2:] == [("user", "Sails.")]
    assert seen[1] == [opened, hello, ("user", "Sails."), ("assistant", "answer 1"), ("user", "Red ones.")]

    client: Any = pump.wiring.state.redis
    client.flushall()  # Redis lets the session go: it goes on from SQL
    pump.finish(pump.submit("s1", "How much?"))
    assert seen[2][:4] == seen[1][:4]
    assert seen[2][-1] == ("user", "How much?")
    first, second, _ = pump.client.session("s1").history()
    assert (first.greeting, first.user_message, first.text) == (HELLO, "Sails.", "answer 1")
    assert second.greeting == ""


def test_an_empty_message_is_refused_with_the_reason(pumps: Callable[..., Pump]) -> None:
    pump, _ = greeted(pumps)
    for text in ("", "  \n"):
        with pytest.raises(InvalidInput, match="user_message: it is empty, and a turn answers a message; send a text"):
            pump.submit("s1", text)
    with pytest.raises(InvalidInput, match="greeting"):
        pump.submit("s1", "Hi.", greeting="")


def test_redacted_sql_keeps_no_greeting(pumps: Callable[..., Pump]) -> None:
    pump, _ = greeted(pumps, redact_logs=True)
    pump.finish(pump.submit("s1", "Sails.", greeting=HELLO))
    first = pump.wiring.store.turns.first("s1")
    assert first is not None
    assert first.greeting is None
