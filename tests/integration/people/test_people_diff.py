"""The turn's diff: one for the whole turn, told once, before its ending."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.event import EventKind
from brainq.contracts.status import Effect, Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Pending
from tests.support.people import Pumps, Watched, events, take_call
from tests.support.pump import Pump


def editor(*script: Any, **options: Any) -> tuple[Brain, dict[str, str]]:
    """A brain that edits a small file system, which is returned with it."""
    files: dict[str, str] = {"a.md": "one\n"}
    brain = Brain("editor", Watched(*script), **options)

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def put(context: RunContext, path: str, text: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a file."""
        context.record_change(path, files.get(path), text)
        files[path] = text
        if text == "raise\n":
            raise ValueError("after the change")
        return "ok"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def drop(context: RunContext, path: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Delete a file."""
        context.record_change(path, files.pop(path), None)
        return "ok"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def later(context: RunContext, path: str) -> Pending:  # pyright: ignore[reportUnusedFunction]
        """Change a file, then wait."""
        context.record_change(path, files.get(path), "later\n")
        return Pending("later-1")

    return brain, files


def put(path: str, text: str) -> tuple[str, dict[str, str]]:
    return "put", {"path": path, "text": text}


def test_the_changes_of_several_calls_and_steps_are_one_diff(pumps: Pumps) -> None:
    brain, _ = editor(
        calls(put("a.md", "two\n"), put("b.md", "new\n")),
        calls(put("a.md", "three\n"), ("drop", {"path": "b.md"}), put("c.md", "x\n")),
        says("done"),
    )
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    result = pump.finish(handle)
    assert result.diff is not None
    assert "-one\n+three\n" in result.diff
    assert "two" not in result.diff
    assert "b.md" not in result.diff, "it was made and deleted in the turn"
    assert "+x\n" in result.diff
    kinds = [event.kind for event in events(handle)]
    assert kinds.count(EventKind.TURN_DIFF) == 1
    assert kinds.index(EventKind.TURN_DIFF) < kinds.index(EventKind.TURN_CLOSING)
    (told,) = events(handle, "turn.diff")
    assert told.data["diff"] == result.diff
    kept = pump.wiring.store.turns.result(handle.turn_id)
    assert kept is not None
    assert kept.diff == result.diff


@pytest.mark.parametrize(
    "script",
    [
        [says("done")],
        [calls(put("a.md", "one\n")), says("done")],
        [calls(put("a.md", "two\n")), calls(put("a.md", "one\n")), says("done")],
    ],
    ids=["no change", "the same text", "there and back"],
)
def test_there_is_none_when_nothing_changed(pumps: Pumps, script: list[Any]) -> None:
    brain, _ = editor(*script)
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    assert pump.finish(handle).diff is None
    assert events(handle, "turn.diff") == []


def test_a_call_that_fails_after_its_change_tells_of_the_change(pumps: Pumps) -> None:
    brain, _ = editor(calls(put("a.md", "raise\n")), says("done"))
    pump = pumps(brain)
    result = pump.finish(pump.submit("s1", "Go."))
    assert result.diff is not None
    assert "+raise\n" in result.diff


def test_a_call_that_waits_for_outside_tells_of_its_change(pumps: Pumps) -> None:
    brain, _ = editor(calls(("later", {"path": "a.md"})), says("done"))
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert pump.client.complete_call("later-1", "ok") == "settled"
    diff = pump.finish(handle).diff
    assert diff is not None
    assert diff.count("+later\n") == 1


def test_a_turn_that_was_cancelled_tells_what_it_had_changed(pumps: Pumps) -> None:
    brain, _ = editor(calls(put("a.md", "two\n"), put("b.md", "never\n")), says("done"))
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    pump.drain("brainq.turns")
    first = take_call(pump)
    pump.answer(first)
    handle.cancel()
    result = pump.finish(handle)
    assert result.ending is Ending.CANCELLED
    assert result.diff is not None
    assert "+two\n" in result.diff
    assert "b.md" not in result.diff
    kinds = [event.kind for event in events(handle)]
    assert kinds.index(EventKind.TURN_DIFF) < kinds.index(EventKind.TURN_CLOSING)


def test_the_next_turns_diff_begins_anew(pumps: Pumps) -> None:
    brain, _ = editor(calls(put("a.md", "two\n")), says("done"))
    pump = pumps(brain)
    assert pump.finish(pump.submit("s1", "Go.")).diff is not None
    assert pump.finish(pump.submit("s1", "Again.")).diff is None


def test_redacted_sql_keeps_no_diff_and_the_caller_gets_it(pumps: Pumps) -> None:
    brain, _ = editor(calls(put("a.md", "secret words\n")), says("done"), redact_logs=True)
    pump = pumps(brain)
    handle = pump.submit("s1", "Go.")
    diff = pump.finish(handle).diff
    assert diff is not None
    assert "secret words" in diff
    kept = pump.wiring.store.turns.result(handle.turn_id)
    assert kept is not None
    assert kept.diff is None
    assert "secret words" not in _all_of(pump, handle.turn_id)


def _all_of(pump: Pump, turn_id: str) -> str:
    store: Any = pump.wiring.store
    found = [
        store.turns.result(turn_id),
        store.calls.of_turn(turn_id),
        store.transcripts.of_turn(turn_id),
        store.traces.of_turn(turn_id),
    ]
    return str(found)
