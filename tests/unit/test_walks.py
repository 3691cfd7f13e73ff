"""CONTRIBUTING's walks name files and functions that are there, and few of them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_FILES = 20
PLACES = (ROOT, ROOT / "brainq", ROOT / "brainq/adapters/redis")
SECTION = (ROOT / "CONTRIBUTING.md").read_text().split("## Four walks\n")[1].split("\n## ")[0]
WALKS: dict[str, list[str]] = {
    title: block.strip().splitlines() for title, block in re.findall(r"### (.+?)\n\n```\n(.+?)```", SECTION, re.DOTALL)
}


def _functions(source: str) -> set[str]:
    """`function` and `Class.method` of a module."""
    found: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    return found


def test_there_are_four_walks() -> None:
    assert len(WALKS) == 4


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_is_short_and_names_what_is_there(title: str) -> None:
    steps = [re.split(r"\s{2,}", line, maxsplit=1) for line in WALKS[title]]
    assert len({file for file, _ in steps}) <= MOST_FILES
    for file, names in steps:
        path = ROOT / "brainq" / file
        assert path.is_file(), file
        if path.suffix == ".py":
            missing = set(names.split(", ")) - _functions(path.read_text())
            assert not missing, f"{file} has no {sorted(missing)}"


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "docs/reference/architecture.md"])
def test_paths_in_sentences_are_there(page: str) -> None:
    named = re.findall(r"`([a-z_]+(?:/[\w{},.-]*)+)`", (ROOT / page).read_text())
    assert len(named) > 5
    for name in named:
        head, brace, rest = name.partition("{")
        options, _, tail = rest.partition("}")
        for one in [f"{head}{option}{tail}" for option in options.split(",")] if brace else [name]:
            assert any((place / one).exists() for place in PLACES), one
