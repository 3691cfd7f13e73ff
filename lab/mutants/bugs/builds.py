"""Bugs of which build goes on with a turn."""

from __future__ import annotations

from lab.mutants.bug import Bug

LUA = "brainq/adapters/redis/lua/lib"
GATES = ("tests/lua/test_builds.py",)
UNIT = ("tests/unit/fleet/test_builds.py",)
RECORDS = ("tests/integration/records/test_build_records.py",)

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
        "brainq/engine/brain/declared.py",
        "_plain(spec) for spec",
        "spec.name for spec",
        UNIT,
    ),
    Bug(
        "a build may go while turns are pinned to it",
        "brainq/fleet/builds.py",
        "if turn.is_pinned and turn.digest not in elsewhere",
        "if not turn.is_pinned and turn.digest not in elsewhere",
        UNIT,
    ),
    Bug(
        "a judge of another build holds the row while its own is rung for",
        "brainq/engine/memory/judge_runner.py",
        'raise Postponed(OTHER_BUILD, 0.0, "passed")',
        'return "passed"',
        ("tests/unit/engine/memory/test_judging.py",),
    ),
    Bug(
        "an autoscaler stops the last workers of a build that parked turns need",
        "brainq/fleet/scale.py",
        "max(bounds.least, min(1, build.needed))",
        "bounds.least",
        ("tests/unit/fleet/test_scale.py",),
    ),
    Bug(
        "a build may go while a cell has not said whether it needs it",
        "brainq/fleet/builds.py",
        "    if away:\n",
        "    if not away:\n",
        UNIT,
    ),
    Bug(
        "builds: an earlier release is forgotten by the next",
        "brainq/adapters/redis/builds.py",
        "{**earlier, **digests}.items()",
        "digests.items()",
        RECORDS,
    ),
    Bug(
        "builds: what is released back goes round",
        "brainq/adapters/redis/builds.py",
        "if digest != to}\n        pairs",
        "if digest}\n        pairs",
        RECORDS,
    ),
    Bug(
        "builds: what is released back is still released",
        "brainq/adapters/redis/builds.py",
        '                ("HDEL", self.keys.released, *digests.values()),\n',
        "",
        RECORDS,
    ),
    Bug(
        "builds: a release has no lifetime",
        "brainq/adapters/redis/builds.py",
        '                ("PEXPIRE", self.keys.released, KNOWN_MS),\n',
        "",
        RECORDS,
    ),
    Bug(
        "builds: a ramp that is over goes on",
        "brainq/adapters/redis/builds.py",
        "        if ramp != build.ramp:",
        "        if ramp is not None and ramp != build.ramp:",
        RECORDS,
    ),
    Bug(
        "builds: a ramp is declared anew at each report",
        "brainq/adapters/redis/builds.py",
        "        if ramp != build.ramp:\n            build.ramp = ramp",
        "        build.ramp = ramp",
        RECORDS,
    ),
    Bug(
        "builds: a ramp ends while workers keep to it",
        "brainq/adapters/redis/builds.py",
        '("GETEX", self.keys.ramp, "PX", KNOWN_MS),',
        '("GET", self.keys.ramp),',
        RECORDS,
    ),
    Bug(
        "builds: a worker does not say that it serves its own build",
        "brainq/adapters/redis/builds.py",
        'digests = [*(brain.digest for brain in build.brains), f"@{build.name}"]',
        "digests = [*(brain.digest for brain in build.brains)]",
        RECORDS,
    ),
    Bug(
        "builds: a worker says builds that nobody tells apart",
        "brainq/adapters/redis/builds.py",
        "        if not build.is_distinct:\n",
        "        if build is None:\n",
        RECORDS,
    ),
    Bug(
        "builds: a build of an older release is never forgotten",
        "brainq/adapters/redis/builds.py",
        'in {field.partition(" ")[0] for field in fields} - {*seen}',
        "in set[str]()",
        RECORDS,
    ),
    Bug(
        "builds: a build that has workers is forgotten",
        "brainq/adapters/redis/builds.py",
        'if field.partition(" ")[0] in old]',
        "]",
        RECORDS,
    ),
    Bug(
        "builds: for how long none has served is counted from the end",
        "brainq/adapters/redis/builds.py",
        "(SERVED_KEPT_MS - ms) / 1000)",
        "ms / 1000)",
        RECORDS,
    ),
    Bug(
        "builds: as many turns as are looked at are all there are",
        "brainq/fleet/builds.py",
        "is_whole=len(turns) < MAX_TURNS",
        "is_whole=len(turns) <= MAX_TURNS",
        RECORDS,
    ),
)
