"""Which citations are kept, and in which order."""

from __future__ import annotations

from brainq.contracts.ids import call_id
from brainq.engine.calls.report import source_rows
from brainq.engine.finalize.result import citations, make_result
from brainq.engine.tools.context import SideOutputs
from tests.unit.engine.finalize.support import ended


def row(call: str, source: str, kind: str = "local") -> dict[str, str]:
    return {"kind": kind, "source": source, "title": "", "quote": "", "call": call}


def test_the_models_order_decides_which_eight_of_ten_are_kept() -> None:
    """Not which call ended first; `c1-10` comes behind `c1-2`."""
    ends_first = [row(call_id(1, index), f"{index}.md") for index in (10, 9, 3, 8, 1, 7, 2, 0, 4, 5)]
    kept = citations(ended(sources=tuple(ends_first)), "local")
    assert [citation.source for citation in kept] == [f"{n}.md" for n in (0, 1, 2, 3, 4, 5, 7, 8)]


def test_a_later_step_comes_later_and_one_calls_sources_stay_in_their_order() -> None:
    rows = (row("c2-0", "b"), row("c2-0", "a"), row("c1-1", "c"), {"kind": "local", "source": "unnamed"})
    assert [each.source for each in citations(ended(sources=rows), "local")] == ["unnamed", "c", "b", "a"]


def test_rendered_paths_are_in_the_models_order_too() -> None:
    rows = (row("c1-1", "/b", "rendered"), row("c1-0", "/a", "rendered"))
    assert make_result(ended(sources=rows)).rendered_content_paths == ("/a", "/b")


def test_each_row_names_its_call() -> None:
    outputs = SideOutputs(rendered_paths=("/a",))
    assert source_rows(outputs, "c1-2", 1) == [{"kind": "rendered", "source": "/a", "call": "c1-2"}]
