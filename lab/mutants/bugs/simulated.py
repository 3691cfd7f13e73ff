"""Bugs that the simulation finds, by whole turns under many faults."""

from __future__ import annotations

from lab.mutants.bug import Bug

SIMULATION = ("tests/simulation/test_simulation.py::test_promises_hold_in_small_worlds_with_many_faults",)

BUGS = (
    Bug(
        "a write whose worker was lost in it runs again",
        "brainq/engine/upkeep/lost_calls.py",
        'effect.is_read or (started == "void" and not idempotent)',
        "effect.is_read or not idempotent",
        SIMULATION,
    ),
    Bug(
        "a result goes out once more",
        "brainq/adapters/redis/lua/result_publish.lua",
        "if t.state ~= 'closing' then",
        "if false then",
        SIMULATION,
    ),
    Bug(
        "a write that a thread continues with runs again after a death",
        "brainq/engine/calls/run.py",
        "        if not claim.effect.is_read:\n            word",
        "        if not claim.effect.is_read and not claim.owner.startswith('v'):\n            word",
        SIMULATION,
    ),
)
