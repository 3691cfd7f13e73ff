"""The sizes of files and functions: one subject a file, neither a drawer of everything nor a file a function."""

from __future__ import annotations

import ast
from pathlib import Path
from statistics import median

SOURCE = Path(__file__).parents[2] / "brainq"
LONGEST_FILE = 400
LONGEST_FUNCTION, LONGER_FUNCTIONS = 40, 70  # of which the longest are signatures that name every option
SHORT_FILE = 40


def _files() -> dict[str, str]:
    """What a person wrote: no `__init__`, no generated file, no migration."""
    files = {path.relative_to(SOURCE).as_posix(): path for path in SOURCE.rglob("*.py")}
    return {
        name: path.read_text()
        for name, path in files.items()
        if path.name != "__init__.py" and "migrations" not in path.parts
    }


def _lines(text: str) -> int:
    return text.count("\n")


def test_no_file_is_a_drawer() -> None:
    assert {name: _lines(text) for name, text in _files().items() if _lines(text) > LONGEST_FILE} == {}


def test_few_files_hold_next_to_nothing() -> None:
    sizes = [_lines(text) for text in _files().values()]
    assert sum(size < SHORT_FILE for size in sizes) <= 0.05 * len(sizes)
    assert median(sizes) >= 110


def test_long_functions_become_fewer() -> None:
    long = [
        f"{name}: {node.name}"
        for name, text in _files().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (node.end_lineno or 0) - node.lineno + 1 > LONGEST_FUNCTION
    ]
    assert len(long) <= LONGER_FUNCTIONS, long
