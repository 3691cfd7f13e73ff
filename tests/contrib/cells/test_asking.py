"""All cells are asked at once, and none holds up the answers of the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisGone

from brainq.contracts.answers import FromCells, cells_away, listed
from brainq.contrib.cells import asking
from brainq.contrib.cells.asking import ask_each, named_away
from brainq.contrib.cells.routing import RoutedCells
from brainq.errors import CellUnreachable, InvalidInput, ResultTimeout, Unreachable

CELLS: Any = [(name, SimpleNamespace(name=name, is_open=True)) for name in ("a", "b", "c")]


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


def test_a_cell_that_hangs_is_away_when_its_time_is_over(
    let_go: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "ANSWER_S", 0.2)
    both = threading.Barrier(2, timeout=60)

    def question(wiring: Any) -> str:
        if wiring.name == "a":
            let_go.wait(60)
        else:
            both.wait()  # they are asked at once
        return wiring.name

    asked = ask_each(CELLS, question)
    assert asked.away[0] == "a"
    assert set(asked.values) | set(asked.away) == {"a", "b", "c"}


def test_a_cell_that_does_not_answer_is_named_and_what_another_refuses_is_raised() -> None:
    failures: dict[str, Exception] = {"b": RedisGone("gone"), "c": Unreachable("gone")}

    def question(wiring: Any) -> str:
        if wiring.name in failures:
            raise failures[wiring.name]
        return wiring.name

    asked = ask_each(CELLS, question)
    assert (asked.answers, asked.away) == ((("a", "a"),), ("b", "c"))
    failures["c"] = InvalidInput("limit", "too many")
    with pytest.raises(InvalidInput):
        ask_each(CELLS, question)


def test_a_turn_that_goes_on_when_the_wait_for_it_ends_is_no_cell_that_is_away() -> None:
    goes_on = ResultTimeout("turn t has not ended in 5 s")
    assert named_away("b", goes_on) is goes_on
    assert isinstance(named_away("b", TimeoutError()), CellUnreachable)


@pytest.mark.parametrize("gone", ["a", "b", "c"])
def test_what_is_for_all_cells_is_done_in_those_that_answer_and_names_the_one_that_does_not(
    gone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = object.__new__(RoutedCells)
    monkeypatch.setattr(cells, "each", lambda: CELLS)
    stopped: list[str] = []

    def stop(wiring: Any) -> None:
        if wiring.name == gone:
            raise RedisGone("gone")
        stopped.append(wiring.name)

    with pytest.raises(CellUnreachable, match=f"cell '{gone}'.*the other cells have it") as away:
        cells.do_in_each(stop)
    assert (away.value.cell, stopped) == (gone, [name for name in "abc" if name != gone])


def test_a_list_is_a_tuple_that_says_what_it_lacks() -> None:
    asked = ask_each(CELLS[:1], lambda _: 1)
    page = listed([1, 2], asked)
    assert page == (1, 2)
    assert cells_away(page) == cells_away((1, 2)) == ()
    assert cells_away(FromCells.of([1], ["b"])) == ("b",)
