"""Bugs of what SQL keeps: schedules, lists, retention, and intents."""

from __future__ import annotations

from lab.mutants.bug import Bug

UNSTARTED = ("tests/lua/test_call_attempts.py", "tests/integration/engine/test_engine_calls.py")
POWER_CUT = ("tests/integration/adapters/sql/test_power_cut.py",)
ERASURE = ("tests/integration/adapters/sql/test_erase.py",)
UNKNOWN = ("tests/integration/cli/test_unknown_writes.py",)
SCHEDULE_ROWS = ("tests/integration/adapters/sql/test_schedules.py",)
SCHEDULES = ("tests/unit/engine/upkeep/test_schedules.py",)

BUGS = (
    Bug(
        "an intent is not on the disk when its write begins",
        "brainq/adapters/sql/repositories/calls.py",
        "self._db.write(statement, values, durably=True)",
        "self._db.write(statement, values)",
        POWER_CUT,
    ),
    Bug(
        "an accepted turn is told before it is on the disk",
        "brainq/adapters/sql/database.py",
        "if durably and self._log is not None:",
        "if durably and self._log is None:",
        POWER_CUT,
    ),
    Bug(
        "a transaction that ended resets a statement of its connection's next user",
        "brainq/adapters/sql/database.py",
        "if self._connection.is_valid:",
        "if not self._connection.is_valid:",
        ("tests/unit/adapters/sql/test_shared_connections.py",),
    ),
    Bug(
        "a schedule that was set anew gets the old next run",
        "brainq/adapters/sql/repositories/schedules.py",
        "case((or_(same_times, _IS_DUE), _S.next_ms), else_=new.next_ms)",
        "_S.next_ms",
        SCHEDULE_ROWS,
    ),
    Bug(
        "a schedule that is set again loses the instant that is due",
        "brainq/adapters/sql/repositories/schedules.py",
        "or_(same_times, _IS_DUE)",
        "same_times",
        SCHEDULE_ROWS,
    ),
    Bug(
        "a schedule with the same timing begins its interval anew",
        "brainq/adapters/sql/repositories/schedules.py",
        "case((same_times, _S.start_ms), else_=new.start_ms)",
        "new.start_ms",
        SCHEDULE_ROWS,
    ),
    Bug(
        "a runner moves a schedule on by the timing that it had",
        "brainq/adapters/sql/repositories/schedules.py",
        '        _S.timing == bindparam("was_timing"),\n',
        "",
        SCHEDULE_ROWS,
    ),
    Bug(
        "a pause loses the instant that was due before it",
        "brainq/adapters/sql/repositories/schedules.py",
        "paused=case((_IS_DUE, _PAUSED_WHILE_DUE), else_=_PAUSED)",
        "paused=_PAUSED",
        SCHEDULE_ROWS,
    ),
    Bug(
        "the only run of a schedule is lost in a pause",
        "brainq/engine/upkeep/schedules.py",
        'if row.timing == "once" and row.missed == "once":',
        "if False:",
        ("tests/integration/client/test_schedules.py",),
    ),
    Bug(
        "runs that a pause left out are not named",
        "brainq/client/schedules.py",
        "wiring.store.schedules.resume(row.name, following, note)",
        'wiring.store.schedules.resume(row.name, following, "")',
        ("tests/integration/client/test_schedules.py",),
    ),
    Bug(
        "what only Redis knows is looked for among the first rows alone",
        "brainq/client/lists.py",
        "yield row, turn\n            if len(rows) < at_once:",
        "yield row, turn\n            if rows:",
        ("tests/integration/records/test_lists.py",),
    ),
    Bug(
        "released flags of turns that stay are pruned",
        "brainq/adapters/sql/prune.py",
        "and_(brakes.c.turn_id.is_(None), brakes.c.over_at < _CUT)",
        "and_(brakes.c.over_at < _CUT)",
        ("tests/integration/adapters/sql/test_prune.py",),
    ),
    Bug(
        "a schedule goes on from now, and its instants of the last minute are lost",
        "brainq/engine/upkeep/schedules.py",
        "after(max(due_ms, now_ms - MISSED_AFTER_MS))",
        "after(max(due_ms, now_ms))",
        SCHEDULES,
    ),
    Bug(
        "nobody says which instants were missed",
        "brainq/engine/upkeep/schedules.py",
        "note = note or missed",
        'note = note or ""',
        SCHEDULES,
    ),
    Bug(
        "a Redis that was restarted is believed that a write never started",
        "brainq/adapters/redis/lua/call_unstarted.lua",
        " or run == '' or c.run ~= attempt .. ' ' .. run then",
        " then",
        UNSTARTED,
    ),
    Bug(
        "a write that has started is taken for one that never did",
        "brainq/adapters/redis/lua/call_start.lua",
        "renew_call(call .. ':begun', attempt)",
        "renew_call()",
        UNSTARTED,
    ),
    Bug(
        "a write is taken for one that never started, because another claim of it did not",
        "brainq/adapters/redis/lua/call_unstarted.lua",
        "if c.owner ~= owner and c.owner ~= '' then return {'STARTED'} end",
        "",
        UNSTARTED,
    ),
    Bug(
        "an attempt that never started is not fenced",
        "brainq/adapters/redis/lua/call_unstarted.lua",
        "redis.call('HSET', trace, call .. ':owner', '')",
        "",
        UNSTARTED,
    ),
    Bug(
        "an erased tenant takes one with it whose name begins alike",
        "brainq/adapters/sql/erase.py",
        "return and_(column >= name, column < prefix_upper_bound(name))",
        'return column.startswith(name.removesuffix(":"))',
        ERASURE,
    ),
    Bug(
        "what others taught a scope keeps the id of an erased turn",
        "brainq/adapters/sql/erase.py",
        "connection.write(last.values(last_turn_id=table.c.turn_id), given)",
        "last.values(last_turn_id=table.c.turn_id)",
        ERASURE,
    ),
    Bug(
        "deleted words stay in SQLite's free pages",
        "brainq/adapters/sql/erase.py",
        'connection.execute("VACUUM")',
        'connection.execute("SELECT 1")',
        ERASURE,
    ),
    Bug(
        "a turn whose write's outcome was never recorded is not listed as unknown",
        "brainq/adapters/sql/repositories/turn_lists.py",
        'or_(calls.c.outcome_kind == "unknown", calls.c.state == "intent")',
        'calls.c.outcome_kind == "unknown"',
        UNKNOWN,
    ),
    Bug(
        "a live turn is listed as unknown for a write that runs",
        "brainq/contracts/history.py",
        "(not self.unknown or turn.unknown_calls > 0)",
        "True",
        UNKNOWN,
    ),
    Bug(
        "a call whose trace Redis lost is not shown from its intent",
        "brainq/client/operator.py",
        "        if intents:\n",
        "        if not intents:\n",
        UNKNOWN,
    ),
    Bug(
        "a session whose last turn was cancelled before it came is kept for good",
        "brainq/adapters/redis/lua/turn_submit.lua",
        "  let_session_go(session, waiting, sid, keep_session_ms)\nelseif",
        "elseif",
        ("tests/lua/test_capacity_keep.py",),
    ),
)
