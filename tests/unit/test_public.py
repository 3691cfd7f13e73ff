"""What users may import: one list, whole, typed, and enough for every page and example."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import brainq
from brainq import AsyncClient, AsyncSession, AsyncTurnHandle, Client, Operator, Session, TurnHandle, engine

ROOT = Path(__file__).parents[2]
PUBLIC = {"brainq", "brainq.engine", "brainq.settings", "brainq.testing"}
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
DEMO_OF_OUR_OWN = {"demo.py", "kept.py", "killing.py", "report.py", "stage.py"}  # they look into the engine on purpose
EXAMPLES = sorted(
    path
    for path in (ROOT / "examples").glob("**/*.py")
    if path.parent.name != "airline" and path.name not in DEMO_OF_OUR_OWN
)


def imported_from(code: str) -> set[str]:
    """The modules of brainq that code imports from."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.ImportFrom(module=str(module)) if module.partition(".")[0] == "brainq":
                found.add(module)
            case ast.Import(names=names):
                found |= {name.name for name in names if name.name.partition(".")[0] == "brainq"}
            case _:
                pass
    return found


def for_type_checkers() -> dict[str, str]:
    """Return the module of each name, as the stub has it."""
    tree = ast.parse((ROOT / "brainq/__init__.pyi").read_text())
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module]
    assert all(name.name == name.asname for node in imports for name in node.names)
    return {name.name: str(node.module) for node in imports for name in node.names}


def test_each_name_is_where_the_stub_says() -> None:
    where = for_type_checkers()
    assert sorted(name for name in where if where[name] != "brainq.engine") == brainq.__all__[:-1]
    for name, module in where.items():
        found = getattr(brainq, name)
        assert getattr(import_module(module), name) is found
        if isinstance(found, type) and module != "brainq.engine":
            assert found.__module__ == module


@pytest.mark.parametrize("name", brainq.__all__)
def test_each_name_is_there_and_says_what_it_is(name: str) -> None:
    found = getattr(brainq, name)
    assert name in dir(brainq)
    if isinstance(found, type):
        assert found.__doc__
        assert not found.__doc__.startswith(f"{name}(")  # what a dataclass says of itself for want of words


@pytest.mark.parametrize("kind", [Client, AsyncClient, TurnHandle, AsyncTurnHandle, Session, AsyncSession, Operator])
def test_what_a_client_takes_and_gives_can_be_imported(kind: type) -> None:
    tree = ast.parse(Path(str(inspect.getsourcefile(kind))).read_text())
    ours = {
        name.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("brainq")
        for name in node.names
    }
    verbs = [
        verb
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__
        for verb in node.body
        if isinstance(verb, ast.FunctionDef | ast.AsyncFunctionDef) and not verb.name.startswith("_")
    ]
    hints = [
        hint
        for verb in verbs
        for hint in (verb.returns, *(of.annotation for of in (*verb.args.args, *verb.args.kwonlyargs)))
        if hint is not None
    ]
    said = {name.id for hint in hints for name in ast.walk(hint) if isinstance(name, ast.Name)} & ours
    assert len(verbs) > 1
    assert said <= {*brainq.__all__, *engine.__all__}


def test_the_engines_parts_are_in_a_module_of_their_own_and_found_where_they_were() -> None:
    assert not {*engine.__all__} & {*brainq.__all__}
    assert brainq.TurnBudget is engine.TurnBudget
    assert all(getattr(engine, name).__doc__ for name in engine.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Brian'"):
        _ = brainq.Brian  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]


def test_importing_brainq_imports_nothing_else_of_it() -> None:
    code = (
        "import sys, brainq;print([m for m in sys.modules if m.startswith(('brainq.', 'celery', 'redis', 'pydantic'))])"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert said.stdout.strip() == "[]"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_imports_from_the_public_modules_only(page: Path) -> None:
    for code in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        assert imported_from(code) <= PUBLIC


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: str(path.relative_to(ROOT)))
def test_an_example_imports_from_the_public_modules_only(example: Path) -> None:
    assert imported_from(example.read_text()) <= PUBLIC


def test_models_that_follow_a_script_are_in_testing() -> None:
    testing = import_module("brainq.testing")
    assert all(hasattr(testing, name) for name in testing.__all__)
