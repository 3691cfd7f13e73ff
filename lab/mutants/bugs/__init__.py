"""All seeded bugs: a file an area, each with its BUGS. Bugs of Lua scripts: `tests/support/model/mutants.py`."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from lab.mutants.bug import Bug

BUGS: tuple[Bug, ...] = tuple(
    bug for area in iter_modules(__path__) for bug in import_module(f"{__name__}.{area.name}").BUGS
)
