"""Bugs of which build goes on with a turn."""

from __future__ import annotations

from ops.mutants.bug import Bug

LUA = "brainq/state/lua/lib"
GATES = ("tests/lua/test_builds.py",)
UNIT = ("tests/unit/test_builds.py",)

BUGS = (
    Bug(
        "a build takes turns whose state it does not read",
        f"{LUA}/state_format.lua",
        "return tonumber(format) <= STATE_FORMAT and",
        "return",
        GATES,
    ),
    Bug(
        "a pinned turn goes on with any brain of the name",
        f"{LUA}/refusal.lua",
        "if t.pin and not has_word",
        "if false and not has_word",
        GATES,
    ),
    Bug(
        "a bell is passed to and fro for as long as nobody answers it",
        f"{LUA}/pass_on.lua",
        "local to = not passed_to(t.passed, t.rung or t.rung_at) and goes_to(why, queue, t)",
        "local to = goes_to(why, queue, t)",
        GATES,
    ),
    Bug(
        "a bell stays in the queue of a build that is gone",
        f"{LUA}/pass_on.lua",
        "return now - tonumber(rung_at or 0) >= rering_ms",
        "return false",
        GATES,
    ),
    Bug(
        "a turn is pinned by what went on with it later",
        f"{LUA}/builds.lua",
        "if past ~= '' or t.pin",
        "if t.pin",
        GATES,
    ),
    Bug(
        "a tool's effect is not declared",
        "brainq/brain/declared.py",
        "_plain(spec) for spec",
        "spec.name for spec",
        UNIT,
    ),
    Bug(
        "a build may go while turns are pinned to it",
        "brainq/client/versions.py",
        "if turn.is_pinned and turn.digest not in elsewhere",
        "if not turn.is_pinned and turn.digest not in elsewhere",
        UNIT,
    ),
    Bug(
        "a judge of another build holds the row while its own is rung for",
        "brainq/memory/judge_runner.py",
        "        self.rows.postpone(turn_id, judge_name, OTHER_BUILD, 0.0, tries)\n",
        "",
        ("tests/unit/memory/test_judging.py",),
    ),
    Bug(
        "an autoscaler stops the last workers of a build that parked turns need",
        "brainq/client/scale.py",
        "max(bounds.least, min(1, build.needed))",
        "bounds.least",
        ("tests/unit/client/test_scale.py",),
    ),
    Bug(
        "a build may go while a cell has not said whether it needs it",
        "brainq/client/versions.py",
        "    if away:\n",
        "    if not away:\n",
        UNIT,
    ),
)
