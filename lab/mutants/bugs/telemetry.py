"""Bugs of spans, and of what is kept of patterns."""

from __future__ import annotations

from lab.mutants.bug import Bug

TRACES = ("tests/integration/fleet/test_traces.py",)
PATTERNS = ("tests/unit/engine/gates/test_patterns.py",)

BUGS = (
    Bug(
        "a turn past its deadline is not an error in its span",
        "brainq/runtime/observe/spans.py",
        "turn.ending in (Ending.FAILED, Ending.TIMED_OUT)",
        "turn.ending is Ending.FAILED",
        TRACES,
    ),
    Bug(
        "the pattern cache does not count its engines",
        "brainq/engine/gates/patterns.py",
        "_CACHE_BYTES * engine.matchers",
        "_CACHE_BYTES",
        PATTERNS,
    ),
    Bug(
        "a template's version is not recorded",
        "brainq/engine/brain/brain.py",
        'added["prompt_version"] = request.prompt_version or template.version',
        'added["prompt_version"] = request.prompt_version',
        ("tests/integration/records/test_turn_records.py",),
    ),
)
