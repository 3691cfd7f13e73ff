"""Finalizer steps and what commits with them."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.adapters.sql.store import Store
from tests.integration.adapters.sql.examples import at_once, decision, end_turn, request


def test_a_step_runs_once(store: Store) -> None:
    runs: list[int] = []

    assert store.steps.run_once("turn-1", "log", "k", lambda _: runs.append(1)) is True
    assert store.steps.run_once("turn-1", "log", "k", lambda _: runs.append(2)) is False
    assert store.steps.run_once("turn-1", "end", "k", lambda _: runs.append(3)) is True
    assert runs == [1, 3]
    assert {row.step: (row.state, row.tries) for row in store.steps.of_turn("turn-1")} == {
        "log": ("done", 1),
        "end": ("done", 1),
    }


def test_a_step_runs_once_from_six_threads(store: Store) -> None:
    runs: list[int] = []

    answers = at_once([lambda: store.steps.run_once("turn-1", "log", "k", lambda _: runs.append(1))] * 6)

    assert (sum(answers), runs) == (1, [1])


def test_an_effect_that_fails_leaves_nothing(store: Store) -> None:
    store.turns.accept(request())

    def write_and_fail(connection: Any) -> None:
        store.decisions.write(connection, decision())
        raise ValueError("half way")

    with pytest.raises(ValueError, match="half way"):
        store.steps.run_once("turn-1", "decision", "k", write_and_fail)

    assert store.decisions.get("turn-1") is None
    assert store.steps.of_turn("turn-1") == []


def test_failures_are_noted_until_the_step_is_done(store: Store) -> None:
    assert store.steps.note_failure("turn-1", "memory", "no \ud800", 1, dead=False) is True
    assert store.steps.note_failure("turn-1", "memory", "gone", 2, dead=True) is True
    (row,) = store.steps.of_turn("turn-1")
    assert (row.state, row.tries, row.error, row.step_key) == ("dead", 2, "gone", "turn-1:memory")

    assert store.steps.run_once("turn-1", "memory", "k", lambda _: None) is True
    assert store.steps.note_failure("turn-1", "memory", "late", 4, dead=True) is False
    (row,) = store.steps.of_turn("turn-1")
    assert (row.state, row.tries, row.error) == ("done", 3, None)


def test_a_decision_is_kept_once(store: Store) -> None:
    written: list[bool] = []
    for step in ("a", "b"):
        store.steps.run_once(
            "turn-1", step, "k", lambda connection: written.append(store.decisions.write(connection, decision()))
        )

    assert written == [True, False]
    assert store.decisions.get("turn-1") == decision().model_copy(update={"tools": ("read_file", "say_\ufffd")})
    assert store.decisions.get("turn-2") is None


def test_history_is_the_last_whole_turns_before(store: Store) -> None:
    for number in range(5):
        sent = request(f"turn-{number}", text=f"question {number} \ud83d".encode("utf-8", "replace").decode())
        store.turns.accept(sent)
        store.messages.log_user(sent, redact=False)
        if number not in (1, 4):
            end_turn(store, sent.turn_id, text=f"answer {number} \ud83d")

    def pairs(before: str, limit: int = 10) -> list[tuple[str, str]]:
        return [(user[:10], answer) for user, answer, _ in store.turns.history("s1", before, limit)]

    everything = [(f"question {n}", f"answer {n} \ufffd") for n in (0, 2, 3)]
    assert pairs("turn-4") == everything
    assert pairs("turn-4", 2) == everything[1:]
    assert pairs("turn-3") == everything[:2]
    assert pairs("turn-0") == []
    assert pairs("not-known-yet") == everything
    assert store.turns.history("s2", "turn-4", 5) == []


def test_a_user_message_is_logged_once(store: Store) -> None:
    first = store.messages.log_user(request("turn-1"), redact=False)

    assert store.messages.log_user(request("turn-1"), redact=False) == first
    assert store.messages.log_user(request("turn-2"), redact=False) > first


def test_redacted_text_is_not_stored(store: Store) -> None:
    store.turns.accept(request("turn-1", text="my secret"))
    store.messages.log_user(request("turn-1", text="my secret"), redact=True)
    end_turn(store, "turn-1")

    assert store.turns.history("s1", "turn-2", 5) == []
