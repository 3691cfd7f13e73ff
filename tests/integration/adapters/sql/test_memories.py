"""Memories and observations: merged, kept apart by scope, searched."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.store import Store
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.memory import MemoryItem, Observation
from tests.integration.adapters.sql.examples import at_once

HOSTILE = [
    '"',
    '"" OR ""',
    "rust AND",
    "NOT rust",
    "NEAR(rust fish, 2)",
    "text: rust",
    "scope_term : x",
    "rust*",
    "^rust",
    "(((rust",
    "rust)) OR 1=1; DROP TABLE memories",
    "-rust +fish",
    "{rust fish} : *",
    "'rust' & | ! <-> :* \\",
    "%_rust",
    "\U0001f600 rust \U0001f600",
    "\ud800rust\udfff rust",
    "a\x00b rust",
    "rust " + " ".join(f"word{number}" for number in range(10_000)),
    "\u202erust rust",
]


def claim(turn_id: str = "turn-1", step: str = "memory") -> FinalStepClaim:
    return FinalStepClaim("s1", turn_id, step, "me", 1, 1)


def remember(store: Store, *texts: str, scope: str = "ann", turn_id: str = "turn-1", kind: Any = "fact") -> None:
    items = [MemoryItem.model_construct(kind=kind, text=said) for said in texts]  # text of any kind
    with store.database.transaction() as connection:
        store.memories.merge(connection, scope=scope, session_id="s1", turn_id=turn_id, items=items)


def found(store: Store, query: str, scope: str = "ann", **more: Any) -> list[str]:
    return [row.text for row in store.memories.search(scope, query, **more)]


def test_a_memory_can_be_read_back(store: Store) -> None:
    remember(store, "The user's cat is called \ud83d Mimi.\x00")

    (row,) = store.memories.list("ann")
    assert (row.scope, row.kind, row.text) == ("ann", "fact", "The user's cat is called \ufffd Mimi.\ufffd")
    assert (row.times_seen, row.session_id, row.turn_id, row.last_turn_id) == (1, "s1", "turn-1", "turn-1")
    assert row.updated_at >= row.created_at
    assert store.memories.of_turn("turn-1") == [row]


def test_a_repeat_is_merged_and_the_first_text_stays(store: Store) -> None:
    remember(store, "Likes tea.", "likes TEA", "Likes  tea!")
    remember(store, "LIKES TEA", turn_id="turn-2")

    (row,) = store.memories.list("ann")
    assert (row.text, row.times_seen, row.turn_id, row.last_turn_id) == ("Likes tea.", 2, "turn-1", "turn-2")
    assert store.memories.of_turn("turn-2") == []


def test_scopes_and_kinds_are_apart(store: Store) -> None:
    remember(store, "Likes tea.")
    remember(store, "Likes tea.", scope="bob")
    remember(store, "Likes tea.", kind="preference")

    assert len(store.memories.list("ann")) == 2
    assert len(store.memories.list("bob")) == 1
    assert found(store, "tea", "bob") == ["Likes tea."]
    assert found(store, "tea", "nobody") == []
    assert [row.kind for row in store.memories.of_kinds("ann", ["preference", "habit"])] == ["preference"]
    assert store.memories.of_kinds("ann", []) == []


def test_threads_merge_the_same_items_without_loss(store: Store) -> None:
    texts = [f"Fact {number}." for number in range(5)]

    def job(number: int) -> None:
        turned = texts[number % 5 :] + texts[: number % 5]  # each in another order
        for repeat in range(4):
            remember(store, *turned, turn_id=f"turn-{number}-{repeat}")

    at_once([lambda number=number: job(number) for number in range(8)])

    assert [row.times_seen for row in store.memories.list("ann")] == [32] * 5


def test_the_best_comes_first(store: Store) -> None:
    remember(
        store,
        "The office is in Berlin.",
        "Deploys go to the staging cluster on Fridays.",
        "The staging cluster runs in Frankfurt, is named after a fish, and has been up for a long time now.",
        "Lunch is at noon.",
    )

    assert found(store, "Why does the deploying to our staging cluster fail?")[0].startswith("Deploys")
    assert len(found(store, "Why does the deploying to our staging cluster fail?")) == 2
    assert found(store, "berlin", limit=1) == ["The office is in Berlin."]
    assert found(store, "zebra") == []


@pytest.mark.parametrize(
    ("kept", "query"),
    [
        ("The user deployed it", "deploying"),
        ("Prefers caf\u00e9s", "cafe"),
        ("\u041b\u044e\u0431\u0438\u0442 \u0427\u0410\u0419", "\u0447\u0430\u0439"),
        ("\u6211\u559c\u6b22\u65e5\u672c\u6599\u7406", "\u65e5\u672c"),
        ("Order 4711 was late", "what about 4711?"),
        ("uses read_note", "read_note"),
        ("Stra\u00dfe", "STRASSE"),
        ("Fu\u00dfball 3d 1e5 0x1f", "0x1f"),
    ],
)
def test_words_are_found_in_every_form(store: Store, kept: str, query: str) -> None:
    remember(store, kept, "Something else entirely.")

    assert found(store, query) == [kept]


def test_a_query_without_words_finds_the_newest(store: Store) -> None:
    remember(store, "One.")
    remember(store, "Two.")
    remember(store, "One.", turn_id="turn-2")  # seen again: newest

    for query in ("", "and what is it then?", "?!", "\U0001f600"):
        assert found(store, query, limit=1) == ["One."]


def test_kinds_narrow_a_search(store: Store) -> None:
    remember(store, "tea one")
    remember(store, "tea two", kind="habit")

    assert found(store, "tea", kinds=["habit"]) == ["tea two"]
    assert found(store, "", kinds=["habit"]) == ["tea two"]


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_nothing_in_a_query_is_syntax(store: Store, query: str) -> None:
    remember(store, "Rust never sleeps.", "Fish do.")
    remember(store, "Rust of another.", scope="bob")

    answer = found(store, query)

    assert "Rust of another." not in answer
    if "rust" in query:
        assert "Rust never sleeps." in answer


@pytest.mark.parametrize("scope", ['user "42"', "a:b OR c", "\ud800", "x" * 1000, "", "\u540d\u524d"])
def test_a_scope_may_be_any_text(store: Store, scope: str) -> None:
    remember(store, "Likes tea.", scope=scope)

    assert found(store, "tea", scope) == ["Likes tea."]
    assert found(store, "tea", scope + "2") == []


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(said=st.lists(st.text(st.characters(exclude_categories=()), min_size=1, max_size=30), max_size=6))
def test_merging_twice_is_seeing_twice(store: Store, said: list[str]) -> None:
    _clear(store)
    remember(store, *said)
    once = store.memories.list("ann")
    remember(store, *reversed(said), turn_id="turn-2")
    twice = store.memories.list("ann")

    assert {row.text for row in twice} == {row.text for row in once}
    assert [row.times_seen for row in twice] == [2] * len(once)
    for row in once:
        assert store.memories.search("ann", row.text, limit=100)


def test_rows_that_go_leave_the_index(store: Store) -> None:
    remember(store, "Likes tea.", "Likes coffee.")
    with store.engine.connect() as connection:
        connection.execute(text("DELETE FROM memories WHERE text = 'Likes tea.'"))
        connection.execute(text("UPDATE memories SET terms = 'drinks milk'"))

    assert found(store, "tea") == found(store, "coffee") == []
    assert found(store, "milk") == ["Likes coffee."]


def test_a_scope_is_read_in_pages_and_forgotten_by_whom_it_is(store: Store) -> None:
    remember(store, "Likes tea.", "Likes milk.", "Has a cat.")
    remember(store, "Likes rum.", scope="bob")
    newest, *_ = page = store.memories.page(["ann", "nobody"], 2)
    assert len(page) == 2
    (oldest,) = store.memories.page(["ann"], 2, after=int(page[-1].row))
    assert {row.text for row in (*page, oldest)} == {"Likes tea.", "Likes milk.", "Has a cat."}
    assert store.memories.page(["ann"], 9, sessions=["acme:"]) == []

    assert store.memories.forget(int(newest.row), ["acme:"]) is False
    assert [store.memories.forget(int(newest.row)) for _ in range(2)] == [True, False]
    assert newest.text not in found(store, newest.text)
    items = [Observation(kind="topic", text="tea")]
    for scope in ("ann", "bob"):
        SqlRecords(store).record_observations(claim(scope, "learner"), scope, "chat_message:1", items)

    def forget_all(*sessions: str) -> list[int]:
        with store.database.transaction() as connection:
            return [of.forget_all(connection, ["ann"], sessions or None) for of in (store.memories, store.observations)]

    assert [forget_all("acme:"), forget_all(), forget_all()] == [[0, 0], [2, 1], [0, 0]]
    assert found(store, "tea") == []
    assert (len(store.memories.list("bob")), len(store.observations.list("bob"))) == (1, 1)


def test_a_search_uses_the_indexes(store: Store) -> None:
    """A scope's search must not read what others have said."""
    for number in range(300):
        remember(store, f"Tea {number}.", scope=f"user-{number % 30}")
    sqlite = store.engine.dialect.name == "sqlite"
    plan = "EXPLAIN QUERY PLAN" if sqlite else "EXPLAIN"
    with store.engine.connect() as connection:
        if not sqlite:
            connection.execute(text("SET enable_seqscan = off"))
        query = (
            "SELECT m.text FROM memories m JOIN memories_fts ON memories_fts.rowid = m.row "
            "WHERE memories_fts MATCH 'scope_term : \"s1\" AND terms : (\"tea\")' AND m.scope = 'user-1'"
            if sqlite
            else "SELECT text FROM memories WHERE scope = 'user-1' AND search @@ to_tsquery('english', 'tea')"
        )
        lines = [str(row) for row in connection.execute(text(f"{plan} {query}"))]

    assert not any("SCAN m" in line and "VIRTUAL" not in line for line in lines)
    assert sqlite or "Index" in " ".join(lines)


def test_observations_keep_the_event_they_were_learned_from(store: Store) -> None:
    records = SqlRecords(store)
    items = [
        Observation(kind="source", text="https://example.org/a is about tea"),
        Observation(kind="open_question", text="Which tea does she like?"),
    ]

    assert records.record_observations(claim(step="learner"), "ann", "chat_message:7", items) is True
    assert records.record_observations(claim(step="learner"), "ann", "chat_message:7", items) is False
    assert records.record_observations(claim("turn-2", "learner"), "ann", "chat_message:9", items[:1]) is True

    rows = {row.kind: row for row in store.observations.list("ann")}
    assert (rows["source"].times_seen, rows["source"].source_event_id) == (2, "chat_message:7")
    assert (rows["source"].turn_id, rows["source"].last_turn_id) == ("turn-1", "turn-2")
    assert rows["open_question"].times_seen == 1
    assert [row.kind for row in store.observations.search("ann", "tea", kinds=["source"])] == ["source"]
    assert len(store.observations.of_turn("turn-1")) == 2


def test_memories_are_recorded_once_a_step(store: Store) -> None:
    records = SqlRecords(store)
    items: Sequence[MemoryItem] = [MemoryItem(kind="fact", text="Likes tea.")]

    assert [records.record_memories(claim(), "ann", items) for _ in range(2)] == [True, False]
    assert [records.record_memories(claim("turn-2"), "ann", ()) for _ in range(2)] == [True, False]
    assert [row.times_seen for row in store.memories.list("ann")] == [1]


def _clear(store: Store) -> None:
    with store.engine.connect() as connection:
        connection.execute(text("DELETE FROM memories"))
