"""Bugs of the fairness of the finalizer: tenants take turns for its first list."""

from __future__ import annotations

from ops.mutants.bug import Bug

QUEUE = "brainq/state/lua/lib/final_queue.lua"
CLAIM = "brainq/state/lua/finalize_claim.lua"
SWEEP = "brainq/state/lua/lib/sweep_final.lua"
TESTS = ("tests/lua/test_final_queue.py",)
WHOLE = ("tests/integration/test_finalizer_turns.py",)

BUGS = (
    Bug(
        "fairness of the finalizer: its list grows however long it is",
        QUEUE,
        "redis.call('LLEN', key) < FINALS_IN_LIST",
        "redis.call('LLEN', key) < 1000000",
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
    Bug(
        "fairness of the finalizer: lost doorbells keep all who wait",
        SWEEP,
        "      fill_finals()\n",
        "",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: a copy of a doorbell tells that those in the list are lost",
        CLAIM,
        "leave_finals(sid, tid) else mark_claimed(place, t.fin_rung) end",
        "leave_finals(sid, tid) end\n  mark_claimed('finalize', t.fin_rung)",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: marks are of when a turn began to wait",
        QUEUE,
        "    redis.call('HSET', turn_key, note_bell(list, since))\n",
        "",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: who has its result keeps a place from others",
        QUEUE,
        "f.result_at and 'finalize_later' or 'finalize'",
        "'finalize'",
        TESTS,
    ),
    Bug(
        "fairness of the finalizer: what is rung again has its first doorbell's id",
        QUEUE,
        "again == 'again' and ring_anew or ring",
        "ring",
        TESTS,
    ),
)
