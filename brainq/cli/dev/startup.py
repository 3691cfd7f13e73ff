"""Check brains, models, Redis, SQL, the disk and ports before workers start.

Run as `python -m brainq.cli.dev.startup`, it only loads the brains, and prints either their error or the files that
they import.
"""

from __future__ import annotations

import ast
import os
import sys
from importlib.util import find_spec
from pathlib import Path

from brainq.app.wiring.preflight import require_start
from brainq.cli.output import note
from brainq.engine.brain.brains import Brains, load_brains
from brainq.errors import BrainNotLoaded, SetupError
from brainq.runtime.settings.deployment import Settings, load_settings

EXAMPLE = "examples.vault"


def ready_to_start(settings: Settings, *, redis_url: str | None, writes: Path | None = None) -> Brains:
    """Return the brains after all checks have passed. If a brain fails to load, its traceback is printed.

    redis_url   the Redis to check; None if an embedded one will be started, or is running on the data directory
    writes      a directory that must be writable
    Raises SetupError with a line for each problem.
    """
    try:
        return require_start(settings, redis_url=redis_url, writes=writes)
    except BrainNotLoaded as error:
        _print_traceback(error)
        if not os.environ.get("BRAINQ_APP") and not Path("app.py").exists():
            raise SetupError(_no_brain_message()) from error
        raise


def _print_traceback(error: BrainNotLoaded) -> None:
    if error.shown_traceback:
        note(error.shown_traceback)


def _no_brain_message() -> str:
    hint = "create a project with `brainq init shop`, or name your brain: `brainq dev -A module:variable`"
    if _is_importable(EXAMPLE):
        hint += f", or try the example: `brainq dev -A {EXAMPLE}:brain`"
    return (
        f"no brain was found: neither -A nor BRAINQ_APP is set, and there is no app.py with a variable `brain`; {hint}"
    )


def _is_importable(module: str) -> bool:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def imported_files() -> set[str]:
    """Return the Python files below the working directory that this process has imported or may import later."""
    here = os.path.join(os.path.realpath(os.getcwd()), "")
    imported: set[str] = set()
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    waiting = [os.path.realpath(file) for file in files if file]
    while waiting:
        file = waiting.pop()
        if file.startswith(here) and file.endswith(".py") and file not in imported:
            imported.add(file)
            waiting += _imported_by(Path(file))
    return imported


def _imported_by(file: Path) -> list[str]:
    """Return the files of the modules that a file's import statements name, without importing them."""
    places = [file.parent, *(Path(place or ".").resolve() for place in sys.path)]
    named: set[str] = set()
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            places.append(file.parents[max(0, node.level - 1)])
            named |= {".".join(filter(None, (node.module, alias.name))) for alias in node.names}
            named.add(node.module or "")
    files = [
        place / f"{name.replace('.', '/')}{ending}"
        for place in places
        for name in named
        if name
        for ending in (".py", "/__init__.py")
    ]
    return [os.path.realpath(file) for file in files if file.is_file()]


if __name__ == "__main__":
    try:
        load_brains(load_settings().app)
        print("\n".join(sorted(imported_files())), file=sys.__stdout__)
    except BrainNotLoaded as failure:
        _print_traceback(failure)
        note(f"brainq: {failure}", style="red")
        sys.exit(1)
