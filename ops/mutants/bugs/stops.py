"""Bugs of operators' stops: what is paused or forbidden by name."""

from __future__ import annotations

from ops.mutants.bug import Bug

STOPS = "brainq/state/lua/lib/stops.lua"
CLAIM = "brainq/state/lua/call_claim.lua"
DESK = "brainq/people/stops.py"
AUDIT = "brainq/store/audit.py"
TESTS = ("tests/lua/test_stops.py",)
WHOLE = ("tests/integration/test_operator_stops.py",)
BULK = "brainq/client/bulk_run.py"

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
        "stops: a judge is not held back by its tenant's",
        "brainq/memory/judge_runner.py",
        "if stop is not None:",
        "if False:",
        ("tests/unit/memory/test_judging.py",),
    ),
    Bug(
        "stops: a model that is paused extracts memories",
        "brainq/models/auxiliary.py",
        "stops=stops_of_models(stops, session_id)",
        "stops=()",
        WHOLE,
    ),
    Bug(
        "stops: none is heard of once none was known",
        "brainq/state/stops.py",
        "        self._none_until = 0.0\n\n    def in_force",
        "        self._none_until += 0.0\n\n    def in_force",
        ("tests/lua/test_stop_put.py",),
    ),
    Bug(
        "audit: what was not done is in the log",
        AUDIT,
        "if result not in NOTHING_DONE or",
        "if True or",
        ("tests/integration/test_audit.py",),
    ),
    Bug(
        "bulk: a tenant's is for the turns of all",
        BULK,
        '        return {**filters, "session_prefixes": tuple(prefixes)}',
        "        return filters",
        ("tests/integration/test_bulk.py",),
    ),
    Bug(
        "bulk: one that is stopped goes on",
        BULK,
        "                if self.stopping.is_set() or (number and self._pause()):",
        "                if number and self._pause() and False:",
        ("tests/integration/test_bulk.py",),
    ),
    Bug(
        "bulk: one verb's token is enough for every verb",
        "brainq/gateway/rest/bulk.py",
        "    request.require_verb(NEEDED[body.verb])\n",
        "",
        ("tests/integration/gateway/test_bulk.py",),
    ),
)
