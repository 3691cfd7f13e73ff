"""Bugs of operators' stops: what is paused or forbidden by name."""

from __future__ import annotations

from lab.mutants.bug import Bug

STOPS = "brainq/adapters/redis/lua/lib/stops.lua"
CLAIM = "brainq/adapters/redis/lua/call_claim.lua"
DESK = "brainq/engine/people/stops.py"
CONNECTION = "brainq/client/connection.py"
TESTS = ("tests/lua/test_stops.py",)
WHOLE = ("tests/integration/people/test_operator_stops.py",)
BULK = "brainq/client/bulk_run.py"
UNIT = ("tests/unit/engine/people/test_stop_desk.py",)
LUA_STOPS = ("tests/lua/test_stops.py",)
POINTS = ("tests/integration/adapters/sql/test_crash_points.py",)

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
        "brainq/engine/memory/judge_runner.py",
        "if stop is None:",
        "if True:",
        ("tests/unit/engine/memory/test_judging.py",),
    ),
    Bug(
        "stops: a model that is paused extracts memories",
        "brainq/engine/models/auxiliary.py",
        "stops=stops_of_models(stops, session_id)",
        "stops=()",
        WHOLE,
    ),
    Bug(
        "stops: none is heard of once none was known",
        "brainq/adapters/redis/stops.py",
        "        self._none_until = 0.0\n\n    def in_force",
        "        self._none_until += 0.0\n\n    def in_force",
        ("tests/lua/test_stops.py",),
    ),
    Bug(
        "audit: what was not done is in the log",
        CONNECTION,
        "if isinstance(act, NewAct) and result not in NOTHING_DONE:",
        "if isinstance(act, NewAct):",
        ("tests/integration/people/test_audit.py",),
    ),
    Bug(
        "bulk: a tenant's is for the turns of all",
        BULK,
        '        return {**filters, "session_prefixes": tuple(prefixes)}',
        "        return filters",
        ("tests/integration/people/test_bulk.py",),
    ),
    Bug(
        "bulk: one that is stopped goes on",
        BULK,
        "            if self._wait_until(due_s):",
        "            if self._wait_until(due_s) and False:",
        ("tests/integration/people/test_bulk.py",),
    ),
    Bug(
        "bulk: one verb's token is enough for every verb",
        "brainq/gateway/rest/bulk.py",
        "    request.require_verb(NEEDED[body.verb])\n",
        "",
        ("tests/integration/gateway/test_operating.py",),
    ),
    Bug(
        "stops: one that pauses is met before one that forbids",
        "brainq/contracts/stop.py",
        'key=lambda stop: stop.mode != "forbid"',
        'key=lambda stop: stop.mode == "forbid"',
        UNIT,
    ),
    Bug(
        "stops: of several the first is met",
        "brainq/contracts/stop.py",
        'key=lambda stop: stop.mode != "forbid"',
        "key=lambda stop: 0",
        UNIT,
    ),
    Bug(
        "stops: in Redis one that pauses is met before one that forbids",
        "brainq/adapters/redis/lua/lib/stops.lua",
        "if mode == 'forbid' then return stop end",
        "if mode == 'pause' then return stop end",
        LUA_STOPS,
    ),
    Bug(
        "stops: a call's longest wait begins anew at each",
        "brainq/adapters/redis/lua/lib/stops.lua",
        "redis.call('HSETNX', trace, call .. ':stop_ends'",
        "redis.call('HSET', trace, call .. ':stop_ends'",
        LUA_STOPS,
    ),
    Bug(
        "stops: a model's provider is not looked at",
        "brainq/contracts/stop.py",
        'if stop.name in (model, f"{provider}:{model}"))',
        "if stop.name.endswith(model))",
        UNIT,
    ),
    Bug(
        "stops: another tenant's model is stopped, too",
        "brainq/contracts/stop.py",
        'if stop.kind == "model" and stop.is_for(session_id))',
        'if stop.kind == "model")',
        UNIT,
    ),
    Bug(
        "stops: none is known though one was heard of meanwhile",
        "brainq/adapters/redis/stops.py",
        "if not found and heard == self._heard:",
        "if not found:",
        UNIT,
    ),
    Bug(
        "stops: it is read before anybody listens",
        "brainq/adapters/redis/stops.py",
        "        self._listen()\n        heard = self._heard\n",
        "        heard = self._heard\n",
        UNIT,
    ),
    Bug(
        "stops: where nothing is stopped each claim asks",
        "brainq/adapters/redis/stops.py",
        "self._none_until = time.monotonic() + NONE_KNOWN_S",
        "self._none_until = 0.0",
        UNIT,
    ),
    Bug(
        "stops: one that was lifted holds for ten seconds more",
        "brainq/adapters/redis/stops.py",
        "if not found and heard",
        "if heard",
        UNIT,
    ),
    Bug(
        "stops: one that has just ended holds",
        "brainq/adapters/redis/stops.py",
        "now_ms < int(ends))",
        "now_ms <= int(ends))",
        UNIT,
    ),
    Bug(
        "stops: Redis has it before SQL",
        "brainq/engine/people/stops.py",
        "        self.rows.put(stop)\n        self.switch.put([stop])",
        "        self.switch.put([stop])\n        self.rows.put(stop)",
        POINTS,
    ),
    Bug(
        "stops: it is lifted in Redis before SQL",
        "brainq/engine/people/stops.py",
        "        stood = self.rows.lift(stop)\n        if self.switch.drop(stop.field) or stood:",
        "        dropped = self.switch.drop(stop.field)\n        if self.rows.lift(stop) or dropped:",
        POINTS,
    ),
    Bug(
        "stops: what waited is not looked at where Redis had lost it",
        "brainq/engine/people/stops.py",
        "if self.switch.drop(stop.field) or stood:",
        "if self.switch.drop(stop.field):",
        UNIT,
    ),
    Bug(
        "stops: a sweeper reads SQL before Redis",
        "brainq/engine/people/stops.py",
        "        met = self.switch.fields()\n        standing = self.rows.standing()\n",
        "        standing = self.rows.standing()\n        met = self.switch.fields()\n",
        POINTS,
    ),
    Bug(
        "stops: a sweeper does not bring what Redis lost",
        "brainq/engine/people/stops.py",
        "        self.switch.put(standing)\n        over",
        "        over",
        POINTS,
    ),
    Bug(
        "stops: what waited for one that ended is not looked at",
        "brainq/engine/people/stops.py",
        "            self.rows.forget_ended()\n            self.switch.hasten()",
        "            self.rows.forget_ended()",
        UNIT,
    ),
)
