"""The caps of the code base: what is counted, and when a figure is above its cap."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

from lab import house


def _class(text: str) -> ast.ClassDef:
    node = ast.parse(text).body[0]
    assert isinstance(node, ast.ClassDef)
    return node


def test_a_figure_above_its_cap_is_named_with_the_remedy() -> None:
    measured = {"lines": {"turn": 101, "calls": 7}, "whole": {"protocols": 3}}
    caps = {"lines": {"turn": 100, "calls": 7}, "whole": {"protocols": 3}}
    assert house.rooms(measured, caps)[0] == "lines.turn: -1 left of 100"
    assert house.excesses(measured, caps, {}) == [
        "lines.turn: 101, and its cap is 100; make it smaller, or raise the cap and say why under [raised]"
    ]


def test_a_package_without_a_cap_is_above_it() -> None:
    assert house.excesses({"files": {"new": 1}}, {}, {})[0].startswith("files.new: 1, and its cap is 0")


def test_a_raised_cap_needs_a_reason() -> None:
    assert house.excesses({}, {}, {"lines.turn": " "}) == ["raised.lines.turn: say why"]
    assert house.excesses({}, {}, {"lines.turn": "a second model wire"}) == []


def test_caps_go_down_to_two_per_cent_above_and_never_up() -> None:
    caps = {"lines": {"turn": 1500, "calls": 900, "gone": 5}}
    assert house.lowered({"lines": {"turn": 1000, "calls": 1000}}, caps) == {"lines": {"calls": 900, "turn": 1020}}
    assert house.lowered({"whole": {"protocols": 12}}, {}) == {"whole": {"protocols": 12}}, (
        "small figures have no slack"
    )


def test_the_file_is_written_with_its_head_walks_and_reasons() -> None:
    kept = "# head\n\n[whole]\nlines = 9\n\n[walks]\nread = [1, 2]\n\n[raised]\nx = 'why'\n"
    text = house.written({"whole": {"lines": 8}, "lines": {"engine.turn": 8}}, kept)
    assert text.startswith("# head\n")
    assert tomllib.loads(text) == {
        "whole": {"lines": 8},
        "lines": {"engine.turn": 8},
        "walks": {"read": [1, 2]},
        "raised": {"x": "why"},
    }


def test_data_classes_are_alike_by_the_fields_of_the_smaller_one() -> None:
    small = house.data_fields(_class("@dataclass(frozen=True)\nclass A:\n a: int\n b: int\n c: int\n d: int"))
    large = house.data_fields(_class("class B(Wire):\n a: int\n b: int\n c: int\n e: int\n f: int"))
    other = house.data_fields(_class("class C(BaseModel):\n a: int\n b: int\n x: int\n y: int"))
    assert house.alike({"A": small, "B": large, "C": other}) == [("A", "B")]
    assert house.data_fields(_class("class D:\n a: int\n b: int\n c: int\n d: int")) == frozenset()


def test_protocols_are_counted_with_parameters_and_without() -> None:
    assert house.is_protocol(_class("class P(Protocol): ..."))
    assert house.is_protocol(_class("class P(Base, Protocol[T]): ..."))
    assert not house.is_protocol(_class("class P(ProtocolError): ..."))


def test_parts_of_the_large_packages_are_counted_one_by_one() -> None:
    assert house.package_of(Path("errors.py")) == "loose"
    assert house.package_of(Path("client/client.py")) == "client"
    assert house.package_of(Path("contrib/cells/move.py")) == "contrib.cells"
    assert house.package_of(Path("contrib/__init__.py")) == "contrib"
