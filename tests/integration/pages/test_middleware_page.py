"""docs/guides/middleware.md: its example does what the page says, and its table has every method."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from brainq.contracts.status import Effect
from brainq.engine.brain.middleware import METHODS
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from tests.support.pump import Pump

PAGE = (Path(__file__).parents[3] / "docs" / "guides" / "middleware.md").read_text()


def test_the_pages_example_runs(
    pumps: Callable[..., Pump], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (block,) = re.findall(r"```python\n# support\.py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "support_on_page.py").write_text(block)
    monkeypatch.syspath_prepend(str(tmp_path))
    brain = importlib.import_module("support_on_page").brain
    asked = calls(("refund", {"order": "a-1"}))
    brain.model = ScriptedProvider([asked, says("Done."), asked, says("I may not.")])
    refunded: list[str] = []

    @brain.tool(effect=Effect.NETWORK)
    def refund(order: str) -> str:  # pyright: ignore[reportUnusedFunction]
        refunded.append(order)
        return "refunded"

    pump = pumps(brain)
    with caplog.at_level("INFO", logger="support"):
        for session in ("acme:1", "trial:1"):
            pump.finish(pump.submit(session, "Refund a-1."))
    assert refunded == ["a-1"]
    assert [record.getMessage() for record in caplog.records if record.name == "support"] == [
        "acme:1: refund starts, attempt 1",
        "acme:1: refund ended, success",
        "acme:1: completed, answered",
        "trial:1: completed, answered",
    ]


def test_the_table_has_every_method() -> None:
    assert set(re.findall(r"^\| `(\w+)\(", PAGE, re.MULTILINE)) == set(METHODS)
