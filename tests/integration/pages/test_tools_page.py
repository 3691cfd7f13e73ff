"""docs/guides/tools.md is one module: it loads, and each of its tools does what the page says."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq.contracts.status import TraceStatus
from brainq.testing import ScriptedProvider, calls, says
from tests.support.blobs import png
from tests.support.pump import Pump

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "tools.md"


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    code = "\n\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    (tmp_path / "desk.py").write_text(code)
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "boat.md").write_text("paint the hull\n")
    (notes / "hull.png").write_bytes(png())
    (notes / "long.md").write_text("it goes on and on\n")
    monkeypatch.setenv("DESK_NOTES", str(notes))
    monkeypatch.delenv("DESK_MODEL", raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    return importlib.import_module("desk")


def test_each_tool_of_the_page_ends_as_it_says(pumps: Callable[..., Pump], desk: Any) -> None:
    asked: list[tuple[str, dict[str, Any]]] = [
        ("read_note", {"path": "boat.md"}),
        ("append_note", {"path": "boat.md", "text": "mend the sail"}),
        ("put_in_cart", {"order": {"sku": "tea"}}),
        ("search_notes", {"word": "sail"}),
        ("delivery_time", {"sku": "tea"}),
        ("word_count", {"path": "boat.md"}),
        ("print_note", {"path": "boat.md"}),
        ("print_note", {"path": "none.md"}),
        ("print_note", {"path": "long.md"}),
        ("ring_bell", {}),
        ("opening_hours", {}),
        ("look_at_shelf", {"shelf-no": 3}),
        ("look_again", {"shelf-no": "4"}),
        ("refund", {"amount": 5}),
        ("show_photo", {"path": "hull.png"}),
        ("export_note", {"path": "boat.md"}),
    ]
    assert {name for name, _ in asked} == set(desk.brain.tools)
    desk.brain.model = ScriptedProvider([calls(*asked), calls(("ring_bell", {})), says("done")])
    pump = pumps(desk.brain, app="desk:brain")
    handle = pump.submit("s1", "Go.", limits={"max_tool_calls": 20})
    result = pump.finish(handle, timeout_s=60.0)
    assert result.text == "done"

    trace = pump.wiring.state.calls.trace("s1", handle.turn_id)
    otherwise = {7: TraceStatus.FAILED, 8: TraceStatus.UNKNOWN}
    for index, entry in enumerate(entry for entry in trace if entry.step == 1):
        assert entry.status is otherwise.get(index, TraceStatus.COMPLETED), entry
    assert [(entry.status, entry.detail) for entry in trace if entry.step == 2] == [(TraceStatus.DENIED, "blocked")]
    lanes = {entry.tool: entry.lanes for entry in trace}
    assert lanes["append_note"] == ("note:boat.md",)
    assert lanes["put_in_cart"] == ("cart:s1", "item:tea")
    assert lanes["refund"] == ("session:s1",)

    told = pump.wiring.state.runtime.results("s1", handle.turn_id)
    assert told["c1-0"] == "paint the hull"
    assert (told["c1-3"], told["c1-5"]) == ('["boat.md"]', "6")
    assert told["c1-7"] == "There is no note none.md. search_notes finds names."
    assert told["c1-8"].startswith("The printer went offline while it printed long.md.\nIt is unknown")
    assert (told["c1-14"], told["c1-15"]) == (f"hull.png (image/png, {len(png())} bytes)", '{"words":6}')
    assert [citation.source for citation in result.local_citations] == ["hours.md"]
    assert [citation.source for citation in result.web_citations] == ["https://example.org/hours"]


def test_the_pages_dear_refund_waits_for_a_person(pumps: Callable[..., Pump], desk: Any) -> None:
    desk.brain.model = ScriptedProvider([calls(("refund", {"amount": 101})), says("done")])
    pump = pumps(desk.brain)
    handle = pump.submit("s1", "Go.")
    pump.drain()
    (approval,) = pump.client.approvals()
    assert approval.reason == "over 100"
    pump.client.approve(approval.id)
    assert pump.finish(handle).text == "done"
