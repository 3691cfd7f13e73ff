"""The arithmetic of `python -m lab.recall`."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from brainq.contracts.tool import ToolSpec
from brainq.engine.turn.prompt.tool_selection import SelectionContext
from examples.airline.recorded import RecordedCall, RecordedSession, RecordedStep, RecordedTurn
from lab.recall.cases import Case, cases
from lab.recall.measure import Recall, measure, percentile, selection_ms
from lab.recall.registry import registries

SPECS = tuple(ToolSpec(name=name, parameters={}) for name in ("alpha", "beta", "gamma"))


class Wanting:
    """Scores a tool by how often the text names it."""

    def rank(self, query: str, specs: Sequence[ToolSpec]) -> list[float]:
        return [float(query.count(spec.name)) for spec in specs]


def step(text: str, *tools: str) -> RecordedStep:
    return RecordedStep(text, tuple(RecordedCall(tool, {}, "read") for tool in tools))


def test_recall_counts_whole_turns_and_single_calls() -> None:
    recall = Recall()
    recall.add(("alpha", "alpha", "beta"), frozenset({"alpha"}))
    recall.add(("alpha",), frozenset({"alpha"}))
    assert (recall.of_turns, recall.of_calls) == (0.5, 0.75)
    assert recall.lost == {"beta": 1}


def test_nothing_counted_is_no_recall() -> None:
    assert (Recall().of_turns, Recall().of_calls) == (0.0, 0.0)


def test_turns_are_measured_as_the_engine_would_select() -> None:
    turns = [
        Case("gamma", SelectionContext(), ("gamma", "gamma")),
        Case("yes", SelectionContext(answer="beta?"), ("beta", "gamma")),
    ]
    plain = measure(turns, SPECS, Wanting(), (1, 2), with_context=False)
    heard = measure(turns, SPECS, Wanting(), (1, 2))
    pinned = measure(turns, SPECS, Wanting(), (1, 2), pinned=("gamma",))

    def kept(found: dict[int, Recall]) -> dict[int, tuple[int, int]]:
        return {size: (recall.whole, recall.kept) for size, recall in found.items()}

    assert kept(plain) == {1: (1, 2), 2: (1, 3)}
    assert kept(heard) == {1: (1, 3), 2: (1, 3)}
    assert kept(pinned) == {1: (1, 3), 2: (2, 4)}


def test_a_call_that_no_tool_answers_is_a_mistake_of_the_measurement() -> None:
    with pytest.raises(ValueError, match="'delta'"):
        measure([Case("x", SelectionContext(), ("delta",))], SPECS, Wanting(), (1,))


@pytest.mark.parametrize(("percent", "value"), [(50, 2.0), (75, 3.0), (99, 4.0), (0, 1.0), (100, 4.0)])
def test_percentiles_are_nearest_rank(percent: float, value: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == value


def test_no_values_have_no_percentile() -> None:
    with pytest.raises(ValueError, match="no values"):
        percentile([], 50)


def test_a_time_is_taken_for_every_turn() -> None:
    turn = Case("gamma", SelectionContext(), ("gamma",))
    taken = selection_ms([turn] * 3, SPECS, Wanting(), 1)
    assert len(taken) == 3
    assert all(ms >= 0 for ms in taken)


def test_cases_are_the_turns_with_calls_and_what_came_before() -> None:
    session = RecordedSession(
        "run-001",
        "one",
        (
            RecordedTurn("Hello", (step("Hi, how can I help?"),)),
            RecordedTurn("Find it", (step("", "alpha"), step("Look at beta?", "alpha"), step("Found."))),
            RecordedTurn("Yes", (step("", "beta"),)),
        ),
        "",
    )
    assert list(cases([session])) == [
        Case("Find it", SelectionContext("Hi, how can I help?", ("Hello",)), ("alpha", "alpha")),
        Case("Yes", SelectionContext("Found.", ("Hello", "Find it")), ("beta",)),
    ]


def test_the_registries_are_large_real_and_without_doubles() -> None:
    found = registries()
    assert {name: len(specs) for name, specs in found.items()} == {"mixed": 97, "crowded": 122}
    for specs in found.values():
        assert len({spec.name for spec in specs}) == len(specs)
        assert all(spec.parameters.get("type") == "object" for spec in specs)
