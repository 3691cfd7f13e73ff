"""What a person's turns left is listed and forgotten, by the scope or by a session that has it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from brainq import AsyncClient, Brain, Memory, MemoryRow, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import says
from brainq.errors import InvalidInput
from tests.support.pump import Pump

Pumps = Callable[..., Pump]


def told(request: ModelRequest) -> ModelReply:
    return says("I know." if "short answers" in repr(request.messages) else "Who are you?")


def make_brain() -> Brain:
    memory = Memory(extractor="rules", scope=lambda session_id: session_id.partition(".")[0])
    return Brain("cook", ScriptedProvider(rules=told), memory=memory)


@pytest.fixture
def pump(pumps: Pumps) -> Pump:
    return pumps(make_brain())


def said(pump: Pump, session_id: str, text: str) -> str:
    handle = pump.submit(session_id, text)
    pump.drain()
    return handle.result(timeout_s=10).text


def test_what_was_said_in_one_session_is_found_from_another_and_forgotten(pump: Pump) -> None:
    memories = pump.client.memories
    said(pump, "ann.1", "I prefer short answers. What is a boat?")
    said(pump, "bob.1", "I prefer long answers.")
    assert said(pump, "ann.2", "Hello") == "I know."

    (row,) = memories.list("ann")
    assert (row.text, row.session_id) == ("The user said: I prefer short answers.", "ann.1")
    assert memories.list(session="ann.2") == (row,)
    assert memories.forget_all("ann", session_prefixes=["acme:"]) == 0
    observed = len(pump.wiring.store.observations.list("ann"))
    assert memories.forget_all(session="ann.7") == 1 + observed > 1
    assert (memories.list("ann"), pump.wiring.store.observations.list("ann")) == ((), [])
    assert said(pump, "ann.3", "Hello") == "Who are you?"

    (other,) = memories.list("bob")
    assert [memories.forget(other.row) for _ in range(2)] == [True, False]


def test_the_asynchronous_twin_does_the_same(pump: Pump) -> None:
    said(pump, "ann.1", "I prefer short answers.")

    async def forgotten() -> tuple[tuple[MemoryRow, ...], bool, int]:
        async with AsyncClient(pump.wiring.settings, make_brain()) as client:
            rows = await client.memories.list(session="ann.2")
            return rows, await client.memories.forget(rows[0].row), await client.memories.forget_all("ann")

    rows, was_there, _ = asyncio.run(forgotten())
    assert ([row.text for row in rows], was_there) == (["The user said: I prefer short answers."], True)
    assert pump.client.memories.list("ann") == ()


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("scope", {}),
        ("scope", {"scope": "ann", "session": "ann.1"}),
        ("scope", {"scope": 7}),
        ("session", {"session": "not a session"}),
        ("limit", {"scope": "ann", "limit": 0}),
        ("after", {"scope": "ann", "after": "seven"}),
        ("session_prefixes", {"scope": "ann", "session_prefixes": ["acme"]}),
    ],
)
def test_what_is_wrong_is_named(pump: Pump, field: str, asked: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        pump.client.memories.list(**asked)
    assert refused.value.field == field


def test_a_session_s_scope_is_asked_of_a_brain_that_remembers(pumps: Pumps) -> None:
    pump = pumps(Brain("plain", ScriptedProvider([says("Done.")])))
    with pytest.raises(InvalidInput, match="pass the scope"):
        pump.client.memories.forget_all(session="ann.1")
    with pytest.raises(InvalidInput, match="memory: 0 must be"):
        pump.client.memories.forget(0)
