"""Bugs of operators' stops: what is paused or forbidden by name."""

from __future__ import annotations

from ops.mutants.bug import Bug

STOPS = "brainq/state/lua/lib/stops.lua"
CLAIM = "brainq/state/lua/call_claim.lua"
DESK = "brainq/people/stops.py"
AUDIT = "brainq/store/audit.py"
TESTS = ("tests/lua/test_stops.py",)
WHOLE = ("tests/integration/test_operator_stops.py",)

BUGS = (
    Bug(
        "stops: a call that is claimed meets none",
        CLAIM,
        "are_stops() and stop_of_call",
        "false and stop_of_call",
        TESTS,
    ),
    Bug("stops: another tenant's is met", STOPS, "name .. ' ' .. tenant", "name .. ' bolt:'", TESTS),
    Bug(
        "stops: one that has ended by itself is met for ever",
        STOPS,
        "(ends == '0' or now < tonumber(ends)) then\n      local",
        "true then\n      local",
        TESTS,
    ),
    Bug(
        "stops: what SQL has no more stays in Redis",
        DESK,
        "            self.switch.drop(field)\n        if over",
        "            pass\n        if over",
        WHOLE,
    ),
    Bug(
        "audit: what was not done is in the log",
        AUDIT,
        "if result not in NOTHING_DONE or",
        "if True or",
        ("tests/integration/test_audit.py",),
    ),
)
