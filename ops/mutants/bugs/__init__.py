"""All seeded bugs, a file an area. Those of the Lua scripts are in `tests/support/model/mutants.py` beside them."""

from __future__ import annotations

from ops.mutants.bugs import engine, retries

BUGS = (*engine.BUGS, *retries.BUGS)
