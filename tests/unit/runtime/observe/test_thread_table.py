"""Each thread that the code starts is in the table of threads that tests make fail."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.thread_table import BY_ITSELF, IN_THE_FLEET

ROOT = Path(__file__).parents[4]
STARTS = {"KeptThread", "KeptTask", "LoopThread", "Watchdog", "start_thread", "start_task"}
NAMED_BY_CALLER = {"thread_step", "Poller", "RedisListener"}
"""Their callers name the thread; these add `brainq-` where it is missing."""
DEFAULTS = {"brainq-watchdog"}


def started() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "brainq").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if called in STARTS | NAMED_BY_CALLER:
                texts = [text for value in node.args[:2] if (text := words(value))]
                yield str(path.relative_to(ROOT)), named(called, texts)


def words(value: ast.expr) -> str:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in value.values)
    return ""


def named(called: str, texts: list[str]) -> str:
    name = next((text for text in texts if "://" not in text), "")
    return f"brainq-{name.removeprefix('brainq-')}" if name and called in NAMED_BY_CALLER else name


def test_each_thread_is_made_to_fail_by_a_test() -> None:
    found = {name for _, name in started()} - {"", "brainq-{}"} | DEFAULTS | {"brainq-stops"}
    assert found == {*IN_THE_FLEET, *BY_ITSELF}
    assert {path for path in BY_ITSELF.values() if not (ROOT / path).is_file()} == set()


def test_only_few_tasks_are_started_on_a_loop_itself() -> None:
    """`loop.create_task` is a method, which the linter does not know."""
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "brainq").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr == "create_task"
        and not (isinstance(node.value, ast.Name) and node.value.id == "asyncio")
    }
    assert found <= {"brainq/engine/calls/executor.py", "brainq/engine/tools/mcp/connection.py"}
