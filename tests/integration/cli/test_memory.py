"""`brainq memory`: what is remembered, and forgetting it."""

from __future__ import annotations

import json

import pytest

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.memory import MemoryItem
from brainq.errors import ExitCode
from tests.support.commands import Brainq


@pytest.fixture
def known(client: Client) -> None:
    store = wiring_of(client).store
    with store.database.transaction() as connection:
        items = [MemoryItem(kind="fact", text=text) for text in ("Likes tea.", "Likes [red]milk.", "Has a cat.")]
        store.memories.merge(connection, scope="ann", session_id="s1", turn_id="t1", items=items)


def test_memories_are_listed_and_forgotten(brainq: Brainq, known: None) -> None:
    listed = brainq("memory", "list", "ann").out
    assert all(word in listed for word in ("fact", "s1", "Likes tea.", "Likes [red]milk.", "Has a cat."))
    newest, *older = json.loads(brainq("memory", "list", "ann", "--json").out)
    page = json.loads(brainq("memory", "list", "ann", "--after", str(newest["row"]), "-n", "9", "--json").out)
    assert page == older

    one = brainq("memory", "forget", str(newest["row"]))
    assert (one.code, one.err) == (0, "1 memory forgotten\n")
    assert brainq("memory", "forget", str(newest["row"])).code == ExitCode.NOT_FOUND
    assert json.loads(brainq("memory", "forget", "--scope", "ann", "--json").out) == {"forgotten": 2}
    assert brainq("memory", "list", "ann").err == "no memories\n"


@pytest.mark.parametrize(
    "wrong",
    [
        ("list",),
        ("list", "ann", "--session", "s1"),
        ("list", "--session", "s1"),  # this brain remembers nothing
        ("forget",),
        ("forget", "0"),
        ("forget", "7", "--scope", "ann"),
    ],
)
def test_wrong_usage_is_told(brainq: Brainq, client: Client, wrong: tuple[str, ...]) -> None:
    assert brainq("memory", *wrong).code == ExitCode.USAGE
