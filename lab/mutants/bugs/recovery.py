"""Bugs of what is done again when a connection broke, and of failovers."""

from __future__ import annotations

from lab.mutants.bug import Bug

LOST_REPLIES = ("tests/integration/fleet/test_lost_replies.py",)
FAILOVER = ("tests/unit/test_failover.py",)

BUGS = (
    Bug(
        "a script whose connection broke is not sent again",
        "brainq/adapters/redis/scripts.py",
        "lasts_s=for_s",
        "lasts_s=0.0",
        LOST_REPLIES,
    ),
    Bug(
        "a call whose claim was not heard of is dropped by its owner",
        "brainq/adapters/redis/lua/call_claim.lua",
        "if c.status == 'running' and c.owner == owner and tonumber(c.attempt) == attempt then",
        "if false then",
        ("tests/lua/test_call_attempts.py",),
    ),
    Bug(
        "a call that settles again is told that it is lost",
        "brainq/adapters/redis/lua/call_settle.lua",
        "  if c.status == status then return stayed_before(stay, visit) or {'SETTLED'} end\n",
        "",
        ("tests/lua/test_call_results.py",),
    ),
    Bug(
        "a finalizer that has gone on is told that it is lost",
        "brainq/adapters/redis/lua/lib/chain.lua",
        "and tonumber(t.fin_fence or -1) == number + 1",
        "and false",
        ("tests/lua/test_finalize.py",),
    ),
    Bug(
        "a step of the finalizer that was claimed by us is held by another",
        "brainq/adapters/redis/lua/finalize_claim.lua",
        "if t.fin_owner ~= owner then",
        "if true then",
        ("tests/lua/test_finalize.py",),
    ),
    Bug(
        "a beat that failed is made again when the next is due",
        "brainq/runtime/leases.py",
        "if failed is None else min(AGAIN_S, self._every_s)",
        "if failed is None else self._every_s",
        ("tests/unit/test_leases.py",),
    ),
    Bug(
        "connections to a primary that was replaced stay open",
        "brainq/runtime/failover.py",
        "if _leads_to(one, service, old)]",
        "if _leads_to(one, service, new)]",
        FAILOVER,
    ),
    Bug(
        "a sentinel that lags has a process connect to the old primary",
        "brainq/runtime/failover.py",
        "found = self._replaced.get((service, address))",
        "found = None",
        FAILOVER,
    ),
    Bug(
        "a write starts though no replica knows of it",
        "brainq/adapters/redis/failover.py",
        "if acknowledged < wanted:",
        "if acknowledged < 0:",
        ("tests/unit/adapters/redis/test_failover.py",),
    ),
    Bug(
        "a turn that Redis lost fails though its write never started",
        "brainq/adapters/sql/repositories/calls.py",
        'get("error_type") == NOT_STARTED',
        'get("error_type") == "NotStarted"',
        ("tests/integration/adapters/sql/test_calls.py", "tests/integration/engine/test_engine_upkeep.py"),
    ),
    Bug(
        "a turn that Redis lost fails while a worker asks whether its write may start",
        "brainq/engine/people/lost_turns.py",
        'self._calls.started(turn_id) == "unsaid"',
        "False",
        ("tests/integration/engine/test_engine_upkeep.py",),
    ),
    Bug(
        "what was accepted behind a turn that Redis lost passes it while a worker is waited for",
        "brainq/engine/people/lost_turns.py",
        "if other != turn_id):",
        "if other == turn_id):",
        ("tests/integration/engine/test_engine_upkeep.py",),
    ),
    Bug(
        "a replica that goes is not waited for",
        "brainq/adapters/redis/failover.py",
        "or replicas >= self._replicas or",
        "or replicas >= 0 or",
        ("tests/unit/adapters/redis/test_failover.py",),
    ),
    Bug(
        "a silent Redis is noticed after half a minute",
        "brainq/adapters/celery/app.py",
        '"health_check_interval": 3,',
        '"health_check_interval": 15,',
        ("tests/unit/adapters/celery/test_app.py",),
    ),
    Bug(
        "a connection that migrated waits for ever for an answer",
        "brainq/adapters/sql/engine.py",
        "        driver.answer_s = answer_s\n",
        "        driver.answer_s = None\n",
        ("tests/integration/fleet/test_half_open.py::test_a_connection_that_migrated_is_bounded_again",),
    ),
)
