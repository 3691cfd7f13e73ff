"""docs/start/from-a-harness.md: each name is there and is what its row says, and the code of the page runs."""

from __future__ import annotations

import asyncio
import inspect
import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, assert_type

import pytest

from brainq import AsyncClient, Client, DeadlineToken
from brainq.engine import AsyncTurnRuntimeState, RuntimeSnapshot, TurnBudget, TurnRuntimeState
from tests.support.brains.obedient import script
from tests.support.pump import Pump
from tests.support.pumping import pumping

PAGE = (Path(__file__).parents[3] / "docs/start/from-a-harness.md").read_text()
ROWS = re.findall(r"^- .+: `(brainq\.[\w.]+)` \((class|method|property)\)$", PAGE, re.M)


def found(path: str) -> object:
    module, _, rest = path.partition(".")
    if rest.startswith("engine."):
        module, rest = f"{module}.engine", rest.removeprefix("engine.")
    thing: object = import_module(module)
    for name in rest.split("."):
        thing = inspect.getattr_static(thing, name) if isinstance(thing, type) else getattr(thing, name)
    return thing


def kind_of(thing: object) -> str:
    return "class" if isinstance(thing, type) else "property" if isinstance(thing, property) else "method"


@pytest.mark.parametrize(("path", "kind"), ROWS)
def test_each_name_is_what_its_row_says(path: str, kind: str) -> None:
    assert kind_of(found(path)) == kind


def test_the_page_has_the_rows() -> None:
    assert len(ROWS) == PAGE.count(": `brainq.") > 40


def test_a_harness_habit_is_a_type_error_and_never_always_true(pump: Pump) -> None:
    budget: Any = TurnBudget.create(60.0, client=pump.client, session_id="s1", turn_id="b-1")
    token: Any = DeadlineToken.from_budget(budget, 5.0)
    for call in (lambda: budget.is_expired(), lambda: token.is_expired(), lambda: token.remaining_s()):
        with pytest.raises(TypeError, match="not callable"):
            call()


def test_a_budget_without_arguments_is_a_harness_s(pump: Pump) -> None:
    budget = TurnBudget.create(client=pump.client, session_id="s1", turn_id="b-3").snapshot()
    assert [budget[name] for name in ("steps_max", "tool_calls_max", "reflections_max")] == [6, 6, 4]
    assert 100 < budget["remaining_s"] <= 120


def typed(client: Client, twin: AsyncClient) -> None:
    """A type checker reads this, in strict mode: what the page calls a property has this type without a call."""
    state = client.state("s1", "t-1")
    budget = TurnBudget.create(60.0, client=client, session_id="s1", turn_id="t-1")
    token = DeadlineToken.from_budget(state.budget, 5.0)
    assert_type(state, TurnRuntimeState)
    assert_type((budget.is_expired, token.is_expired, state.is_accepting_writes), tuple[bool, bool, bool])
    assert_type((budget.remaining_s, token.remaining_s), tuple[float, float])
    assert_type((state.validation_repair_counts, state.repairs_by_tool), tuple[dict[str, int], dict[str, int]])
    assert_type(state.snapshot(), RuntimeSnapshot)
    assert_type(twin.state("s1", "t-1"), AsyncTurnRuntimeState)
    token.cancel()


def test_the_pages_code_runs(pump: Pump) -> None:
    names: dict[str, Callable[..., Any]] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(code, names)
    assert names["work_within"](pump.client, "s1", "b-2") == 2
    with pumping(pump):
        assert names["answer"](pump.client, "s1", script(final="three")) == "three"


def test_the_asynchronous_state_reads_all_at_once_and_moves(pump: Pump) -> None:

    handle = pump.submit("s1", script([("read", {"name": "r"})], final="found"))
    pump.finish(handle)

    async def talk() -> RuntimeSnapshot:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            state = client.state("s1", handle.turn_id)
            assert not await state.close_writes(by="late")
            assert await state.budget.per_tool_remaining_s(5.0) <= 5.0
            return await state.snapshot()

    seen = asyncio.run(talk())

    assert (seen.final_text, list(seen.tool_results), seen.is_accepting_writes) == ("found", ["c1-0"], False)
    assert seen.budget["steps_used"] == 2
