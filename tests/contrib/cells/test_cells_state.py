"""What an operator sees of the cells, put together of what they answered."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from brainq.cli.pages.fleet import print_cells
from brainq.client.cells import CellAnswer, cells_state
from brainq.client.connection import Connection
from brainq.client.spending import BudgetVerbs
from brainq.contracts.answers import Answers
from brainq.contracts.budgets import BudgetState
from brainq.contracts.cell import Move
from brainq.contracts.fleet import Fleet, FleetTurns
from brainq.runtime.settings.deployment import Settings, load_settings

NOW = datetime(2026, 11, 27, tzinfo=UTC)
CELLS = (
    '{"a": {"redis": "redis://:pw@h1/0", "sql": "sqlite:///a"}, "b": {"redis": "redis://h2/0", "sql": "sqlite:///b"}}'
)
MOVE = Move("acme:", "a", "b", 2, "copying", "w1", NOW, NOW, NOW)


def settings() -> list[tuple[str, Settings]]:
    loaded = load_settings(cells=CELLS)
    return [(cell.name, loaded.of_cell(cell)) for cell in loaded.all_cells()]


def answer(active: int, parked: int) -> CellAnswer:
    return CellAnswer(Fleet.model_construct(turns=FleetTurns(active=active, parked=parked), pools=()))


def test_each_cell_has_its_tenants_and_turns_and_no_password_is_shown() -> None:
    fleets = Answers((("a", answer(1, 2)), ("b", answer(3, 4))))
    state = cells_state(settings(), fleets, ({"a": 7}, [MOVE]))
    assert [(cell.name, cell.is_home, cell.tenants, cell.active, cell.parked) for cell in state.cells] == [
        ("a", True, 7, 1, 2),
        ("b", False, 0, 3, 4),
    ]
    assert [(move.tenant, move.phase) for move in state.moves] == [("acme:", "copying")]
    assert "pw" not in state.model_dump_json()


def test_a_cell_that_did_not_answer_is_away_and_without_home_no_tenants_are_known() -> None:
    state = cells_state(settings(), Answers((("b", answer(3, 4)),), away=("a",)), None)
    assert [(cell.name, cell.is_up, cell.tenants) for cell in state.cells] == [("a", False, None), ("b", True, None)]
    assert state.directory == "away"
    console = Console(width=100, record=True)
    print_cells(console, state)
    assert "away" in console.export_text()


def test_one_cell_without_a_name() -> None:
    state = cells_state([("", load_settings(redis_url="redis://h"))], Answers((("", answer(0, 0)),)), ({}, ()))
    assert state.directory == "up"
    console = Console(width=100, record=True)
    print_cells(console, state)
    assert "BRAINQ_CELLS is not set" in console.export_text()


def test_budgets_of_several_cells_are_in_one_order_and_a_shared_one_is_one_line() -> None:
    def state(scope: str, spent: float) -> BudgetState:
        return BudgetState(scope=scope, per="day", usd=9, at_cap="park", spent_usd=spent, begins_at=NOW, ends_at=NOW)

    answers = Answers(
        (("a", [state("all", 1), state("tenant beta:", 1)]), ("b", [state("all", 2), state("tenant acme:", 2)]))
    )

    def follow(session_id: str, attempt: Callable[[], Any]) -> Any:
        return attempt()

    def ask(*_: object) -> Answers[list[BudgetState]]:
        return answers

    cells: Any = SimpleNamespace(ask=ask, follow=follow)
    listed = BudgetVerbs(Connection(cells)).list()
    assert [(one.scope, one.spent_usd) for one in listed] == [("all", 3), ("tenant acme:", 2), ("tenant beta:", 1)]
