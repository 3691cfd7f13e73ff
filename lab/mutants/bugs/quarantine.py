"""Bugs of the quarantine: suspects, and the processes they share."""

from __future__ import annotations

from lab.mutants.bug import Bug

POOL = ("tests/unit/app/wiring/test_process_pool.py",)
WORKER = ("tests/unit/app/wiring/test_quarantine_children.py",)
BLAME = ("tests/lua/test_turn_blame.py",)
WAIT = ("tests/lua/test_lost_work.py",)
PRESENCE = ("tests/lua/test_presence.py",)
LAPSE = ("tests/lua/test_lost_work.py",)
MANY = ("tests/integration/fleet/test_quarantine.py",)

BUGS = (
    Bug(
        "a group that died goes on in a group of the same size",
        "brainq/runtime/processes/quarantine_pool.py",
        "return -(-died_among // max(2, processes)) if died_among else MAX_MEMBERS",
        "return died_among or MAX_MEMBERS",
        (*POOL, *MANY),
    ),
    Bug(
        "suspects fill one process before another is started",
        "brainq/runtime/processes/quarantine_pool.py",
        "for max_members in (FILL_FIRST, size):",
        "for max_members in (size, FILL_FIRST):",
        POOL,
    ),
    Bug(
        "whoever asks last for a place in quarantine has it first",
        "brainq/runtime/processes/quarantine_pool.py",
        "if self._queue[0] is ticket and",
        "if self._queue[-1] is ticket and",
        POOL,
    ),
    Bug(
        "a suspect comes into a process that has died",
        "brainq/runtime/processes/quarantine_pool.py",
        "return not self.is_retired and self.size == size",
        "return self.size == size",
        POOL,
    ),
    Bug(
        "a child that died while it was idle keeps its group's number",
        "brainq/runtime/processes/quarantine_pool.py",
        "if shared.is_retired or not shared.child.is_alive or keep == 0:\n                self._shared.remove(shared)\n"
        "                unneeded.append(shared)",
        "if shared.is_retired or not shared.child.is_alive or keep == 0:\n                self._shared.remove(shared)",
        (*POOL, *WORKER),
    ),
    Bug(
        "a dead child is reaped before its group is killed",
        "brainq/runtime/processes/child.py",
        "os.WEXITED | os.WNOHANG | os.WNOWAIT",
        "os.WEXITED | os.WNOHANG",
        WORKER,
    ),
    Bug(
        "a turn that was not taken up when another killed its process waits for the sweeper",
        "brainq/app/wiring/quarantine.py",
        'if word == "BLAMED":',
        "if word:",
        (*WORKER, *MANY),
    ),
    Bug(
        "neighbours are blamed for the death of a shared process",
        "brainq/adapters/redis/lua/turn_blame.lua",
        "local is_sole = among <= 1",
        "local is_sole = true",
        (*BLAME, *MANY),
    ),
    Bug(
        "a turn's time passes while it waits for a place in quarantine",
        "brainq/adapters/redis/lua/quarantine_wait.lua",
        "redis.call('HINCRBY', budget, 'deadline', more)",
        "redis.call('HINCRBY', budget, 'deadline', 0)",
        WAIT,
    ),
    Bug(
        "a turn that waits in quarantine has its whole time again",
        "brainq/adapters/redis/lua/turn_claim.lua",
        "if t.step == '0' and t.waits_for ~= QUARANTINE and now < deadline then",
        "if t.step == '0' and now < deadline then",
        WAIT,
    ),
    Bug(
        "a process is gone at the first look that misses it",
        "brainq/adapters/redis/lua/presence_look.lua",
        "elseif absent_at == 0 or absent_at > now then",
        "elseif absent_at > now then",
        PRESENCE,
    ),
    Bug(
        "a Redis that began anew takes everybody for gone",
        "brainq/adapters/redis/lua/presence_look.lua",
        "elseif seen_on ~= run then",
        "elseif false then",
        PRESENCE,
    ),
    Bug(
        "a beat after it was missed does not save what a process holds",
        "brainq/adapters/redis/lua/leases_lapse.lua",
        " or lease - lease_ms >= absent_at then",
        " then",
        LAPSE,
    ),
    Bug(
        "a write that began is unknown as soon as its process is missed",
        "brainq/adapters/redis/lua/leases_lapse.lua",
        "wrote and beat_ms or 0",
        "0",
        LAPSE,
    ),
    Bug(
        "the lanes of a process that is gone keep its calls from being run again",
        "brainq/adapters/redis/lua/leases_lapse.lua",
        "      lapse_lanes(call, after_ms)\n",
        "",
        LAPSE,
    ),
    Bug(
        "lanes that a function still beats for are taken from it",
        "brainq/adapters/redis/lua/leases_lapse.lua",
        " and until_ms - lease_ms < absent_at",
        "",
        LAPSE,
    ),
)
