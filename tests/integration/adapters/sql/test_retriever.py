"""What a turn begins with: facts, preferences and habits that are known."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import bindparam, update

from brainq.adapters.sql.repositories.knowledge import SqlMemoryRetriever
from brainq.adapters.sql.store import Store
from brainq.adapters.sql.tables import memories
from brainq.contracts.memory import MemoryItem, MemoryRetriever, RetrievedMemory


def scope_of(session_id: str) -> str:
    return session_id.split(":")[0]


def remember(store: Store, scope: str, *items: tuple[str, str]) -> None:
    with store.database.transaction() as connection:
        store.memories.merge(
            connection,
            scope=scope,
            session_id="s1",
            turn_id="turn-1",
            items=[MemoryItem.model_validate({"kind": kind, "text": text}) for kind, text in items],
        )


def test_nothing_is_known_of_a_stranger(store: Store) -> None:
    retriever = SqlMemoryRetriever(store.memories, scope_of)

    assert isinstance(retriever, MemoryRetriever)
    assert retriever.retrieve_for_context("hello", "ann:1") == RetrievedMemory()


def test_facts_are_searched_and_habits_come_anyway(store: Store) -> None:
    remember(
        store,
        "ann",
        ("fact", "The cat is called Mimi."),
        ("fact", "The cat\nsleeps on the sofa"),
        ("fact", "The office is in Berlin."),
        ("preference", "Prefers short answers."),
        ("preference", "No jokes about the cat."),
        ("habit", "Feeds the cat at six."),
        ("habit", "prefers SHORT answers"),
    )
    remember(store, "bob", ("fact", "The cat is called Tom."), ("habit", "Asks about cats."))

    known = SqlMemoryRetriever(store.memories, scope_of).retrieve_for_context("What does the cat do?", "ann:7")

    (said,) = {f"(said {row.updated_at:%Y-%m-%d})" for row in store.memories.list("ann")}
    assert set(known.text.splitlines()) == {f"- The cat is called Mimi. {said}", f"- The cat sleeps on the sofa {said}"}
    assert known.preferences == (f"No jokes about the cat. {said}", f"Prefers short answers. {said}")
    assert known.habits == (f"Feeds the cat at six. {said}",)


def test_of_facts_that_contradict_each_other_the_newest_is_first_and_both_are_dated(store: Store) -> None:
    remember(store, "ann", ("fact", "The user lives in Oslo."))
    with store.database.transaction() as connection:
        long_ago = datetime(2024, 2, 29, 12, tzinfo=UTC)
        connection.write(update(memories).values(updated_at=bindparam("then")), {"then": long_ago})
    remember(store, "ann", ("fact", "The user lives in Bern now."))
    known = SqlMemoryRetriever(store.memories, scope_of).retrieve_for_context("Where do I live, user?", "ann")
    new, old = known.text.splitlines()
    assert new.startswith("- The user lives in Bern now. (said 2")
    assert old == "- The user lives in Oslo. (said 2024-02-29)"


def test_at_most_the_limit_of_facts(store: Store) -> None:
    remember(store, "ann", *(("fact", f"Cat number {number}") for number in range(20)))

    retriever = SqlMemoryRetriever(store.memories, scope_of, limit=3)

    assert len(retriever.retrieve_for_context("cat", "ann").text.splitlines()) == 3
    assert len(retriever.retrieve_for_context("", "ann").text.splitlines()) == 3
