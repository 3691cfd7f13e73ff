"""All seeded bugs: a file an area, each with its BUGS. Bugs of Lua scripts: `tests/support/model/mutants.py`."""

from __future__ import annotations

HEAD
from importlib import import_module
from pkgutil import iter_modules

from ops.mutants.bugs import engine, kept, quarantine

BUGS = (
    *engine.BUGS,
    *kept.BUGS,
    *quarantine.BUGS,
)
