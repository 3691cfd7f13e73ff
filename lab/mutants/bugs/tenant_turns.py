"""Bugs of the fairness of the finalizer and of the tools: tenants take turns for their lists."""

from __future__ import annotations

from lab.mutants.bug import Bug

QUEUE = "brainq/adapters/redis/lua/lib/broker_queue.lua"
FINALS = "brainq/adapters/redis/lua/lib/final_queue.lua"
CALLS = "brainq/adapters/redis/lua/lib/call_queue.lua"
CALL_CLAIM = "brainq/adapters/redis/lua/call_claim.lua"
CALL_SWEEP = "brainq/adapters/redis/lua/lib/sweep_calls.lua"
CLOSE_CALLS = "brainq/adapters/redis/lua/lib/calls_left.lua"
CLAIM = "brainq/adapters/redis/lua/finalize_claim.lua"
SWEEP = "brainq/adapters/redis/lua/lib/sweep_final.lua"
TESTS = ("tests/lua/test_final_queue.py",)
WHOLE = ("tests/integration/finalize/test_finalizer_turns.py",)
TESTS_OF_CALLS = ("tests/lua/test_call_queue.py",)

BUGS = (
    Bug(
        "fairness of the finalizer: its list grows however long it is",
        QUEUE,
        "length < places_of(list)",
        "length < 1000000",
        WHOLE,
    ),
    Bug(
        "fairness of the finalizer: all of a tenant's turns are in one round",
        QUEUE,
        "math.max(tonumber(last[1] or 0), tonumber(last[2] or 0)) + 1",
        "tonumber(last[2] or 0) + 1",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: a tenant that comes anew goes before who waits",
        QUEUE,
        "math.max(tonumber(last[1] or 0), tonumber(last[2] or 0)) + 1",
        "tonumber(last[1] or 0) + 1",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: a claim makes no room in the list",
        CLAIM,
        "local reply = claim()\nfill_finals()",
        "local reply = claim()",
        TESTS,
    ),
    Bug("fairness of the finalizer: lost doorbells keep all who wait", SWEEP, "      fill_finals()\n", "", TESTS),
    Bug(
        "fairness of the finalizer: a copy of a doorbell tells that those in the list are lost",
        CLAIM,
        "leave_finals(sid, tid) else mark_claimed(place, t.fin_rung) end",
        "leave_finals(sid, tid) end\n  mark_claimed('finalize', t.fin_rung)",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: marks are of when a turn began to wait",
        FINALS,
        "  redis.call('HSET', turn_key, note_bell(list, since))\n",
        "",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: who has its result keeps a place from others",
        FINALS,
        "f.result_at and 'finalize_later' or 'finalize'",
        "'finalize'",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: what is rung again has its first doorbell's id",
        FINALS,
        "again == 'again' and ring_anew or ring",
        "ring",
        TESTS,
    ),
    Bug(
        "fairness of tools: a dispatched call goes into its list however long that is",
        CALLS,
        "if has_place(c.effect) then return",
        "if true then return",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: a claim makes no room in the list",
        CALL_CLAIM,
        "local reply = claim()\nfill_calls(c.effect or serves)",
        "local reply = claim()",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: a doorbell of a call that is gone makes no room in the list",
        CALL_CLAIM,
        "fill_calls(c.effect or serves)",
        "fill_calls(c.effect or '')",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: a copy of a doorbell tells that those in the list are lost",
        CALL_CLAIM,
        "if not leave_calls(trace, sid, tid, call, c) then mark_claimed",
        "leave_calls(trace, sid, tid, call, c)\n  do mark_claimed",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: marks are of when a call began to wait",
        CALLS,
        "redis.call('HSET', key, call .. ':rung_at', now, call .. ':bell',",
        "redis.call('HSET', key, call .. ':bell',",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: lost doorbells keep all who wait",
        CALL_SWEEP,
        "        fill_calls(c.effect)\n",
        "",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: the sweeper rings for calls that only wait",
        CALL_SWEEP,
        "if waits == 'queued' then",
        "if waits == 'never' then",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: a queue that was lost keeps its calls",
        CALL_SWEEP,
        "elseif waits or bell_is_gone",
        "elseif not waits and bell_is_gone",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: calls of a turn that has ended keep their places",
        CLOSE_CALLS,
        "      leave_calls(trace, sid, tid, call, c)\n",
        "",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: what waited is as old as its doorbell",
        CALLS,
        "tool, how, math.floor(since / 1000))",
        "tool, how)",
        TESTS_OF_CALLS,
    ),
    Bug(
        "fairness of tools: a call that waited for its turn is said to be rung for again",
        "brainq/adapters/redis/calls.py",
        "rung_at is None or rung_at in first",
        "rung_at is None or rung_at == first[0]",
        ("tests/integration/engine/test_tool_turns.py",),
    ),
    Bug(
        "fairness of tools: the fleet counts only what lies in the lists",
        "brainq/fleet/snapshot.py",
        "depth=waiting + sum(",
        "depth=sum(",
        ("tests/integration/engine/test_tool_turns.py",),
    ),
)
