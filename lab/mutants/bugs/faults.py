"""The suite of faults: what it would not notice if it were wrong itself."""

from __future__ import annotations

from lab.mutants.bug import Bug

BUGS = (
    Bug(
        "a fault that did not fire is green",
        "lab/faults/verdict.py",
        "return self.has_fired and self.turns > 0",
        "return self.turns > 0",
        ("tests/unit/lab/test_faults.py",),
    ),
    Bug(
        "a write that ran twice is not seen",
        "lab/faults/verdict.py",
        "if ran > 1:",
        "if ran > 2:",
        ("tests/unit/lab/test_faults.py",),
    ),
    Bug(
        "what a fence refused another worker counts for the host that was cut off",
        "lab/faults/table/hosts.py",
        'if line["pid"] == self.pid and line["at"]',
        'if line["at"]',
        ("tests/unit/lab/test_faults.py",),
    ),
    Bug(
        "a host that was not cut off counts as cut off",
        "lab/faults/table/hosts.py",
        "self.host is None or self.count(self.host) <= self.before",
        "self.host is None",
        ("tests/unit/lab/test_faults.py",),
    ),
)
