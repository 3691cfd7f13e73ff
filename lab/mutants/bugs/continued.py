"""Bugs of threads that continue with what their work opens: claims by scripts, offers, threads, and what is seen."""

from __future__ import annotations

from lab.mutants.bug import Bug

LUA = "brainq/adapters/redis/lua/"
STAY, STAY_CALL, STAY_FINAL = (f"{LUA}lib/{name}.lua" for name in ("stay", "stay_call", "stay_final"))
VISIT, VISITS = "brainq/engine/visit.py", "brainq/app/wiring/visits.py"
SCRIPTS = ("tests/lua/test_stay.py",)
OFFERS = ("tests/unit/engine/test_visit.py",)
HANDLED = ("tests/unit/app/wiring/test_visits.py",)
WHOLE = ("tests/integration/engine/test_visits.py",)
SEEN = ("tests/integration/adapters/celery/test_visits_seen.py",)
MODEL = ("tests/lua/test_model.py::test_no_schedule_breaks_a_rule",)

BUGS = (
    Bug(
        "a call is continued with without a lease",
        STAY_CALL,
        "begin_attempt(call, attempt, c, visit.owner, visit.lease_ms)",
        "begin_attempt(call, attempt, c, visit.owner, 0)",
        SCRIPTS,
    ),
    Bug(
        "a call is continued with that nobody has claimed",
        STAY_CALL,
        "  begin_attempt(call, attempt, c, visit.owner, visit.lease_ms)\n",
        "",
        (*SCRIPTS, *MODEL),
    ),
    Bug(
        "a continued step has the fence of the step before",
        STAY_CALL,
        "local fence = t.fence + 1",
        "local fence = tonumber(t.fence)",
        SCRIPTS,
    ),
    Bug("a continued step has no owner", STAY_CALL, "  own_turn(more, fence, visit)\n", "", SCRIPTS),
    Bug(
        "a suspect turn is continued beside others, and not in quarantine",
        STAY_CALL,
        "or (more.lost_attempts or '0') ~= '0' and 'suspect' or",
        "or",
        SCRIPTS,
    ),
    Bug(
        "a turn past its deadline is continued",
        STAY_CALL,
        "or time_left_ms() <= 0 and 'expired' or",
        "or",
        SCRIPTS,
    ),
    Bug(
        "a turn is begun by a build that its doorbell did not choose",
        STAY_CALL,
        "or t.step == '0' and visit.declared ~= '' and 'begins'",
        "",
        SCRIPTS,
    ),
    Bug(
        "a process without the brain continues with its call",
        STAY_CALL,
        "remaining_ms <= 0 and 'expired' or refusal(visit.brains, t, turn)",
        "remaining_ms <= 0 and 'expired'",
        SCRIPTS,
    ),
    Bug(
        "a repeated script gives its claim to any thread",
        STAY_CALL,
        "  if t.owner == visit.owner then",
        "  if t.owner ~= '' then",
        SCRIPTS,
    ),
    Bug(
        "a chain is continued without a lease",
        STAY_FINAL,
        "'fin_lease', now + visit.lease_ms)",
        "'fin_lease', 0)",
        SCRIPTS,
    ),
    Bug(
        "a worker that dies in a continued step is not counted",
        STAY_FINAL,
        "'fin_lost', 1",
        "'fin_lost', 0",
        SCRIPTS,
    ),
    Bug("a thread continues with an effect that is not served here", STAY, "or 'unserved'", "or '9'", SCRIPTS),
    Bug(
        "whoever waits in the queue is overtaken",
        STAY,
        "if free < 0 then return decline('waiting') end",
        "if free == -1 and is_waited_for(list) then return decline('waiting') end",
        (*SCRIPTS, *MODEL),
    ),
    Bug(
        "tenants that wait for their turn are overtaken",
        STAY,
        "is_waited_for(list) and -1 or free - waiting_in(list)",
        "free - waiting_in(list)",
        SCRIPTS,
    ),
    Bug(
        "each queue of writes has a thread of its own",
        STAY,
        "local SHARED = 'local_write network destructive'",
        "local SHARED = ''",
        SCRIPTS,
    ),
    Bug(
        "a thread continues with a call of another turn",
        STAY,
        "stayed or tid ~= offered_tid",
        "stayed",
        SCRIPTS,
    ),
    Bug("a thread continues with two calls", STAY, "if stayed or tid", "if tid", SCRIPTS),
    Bug(
        "what operators have stopped is continued with",
        STAY,
        "  if are_stops() then return decline('stops') end\n",
        "",
        SCRIPTS,
    ),
    Bug(
        "the thread of a call that was cut off continues",
        f"{LUA}call_settle.lua",
        "if not is_cut then offer_calls(stay, visit) end",
        "offer_calls(stay, visit)",
        SCRIPTS,
    ),
    Bug(
        "continued calls are missing among the turn's events",
        f"{LUA}lib/claim_call.lua",
        "  emit(events, 'call.running', {call = call, tool = c.tool, attempt = attempt})\n",
        "",
        SCRIPTS,
    ),
    Bug(
        "a process that is about to stop continues",
        VISIT,
        'return "draining" if draining else "old"',
        'return "old"',
        OFFERS,
    ),
    Bug("an old visit continues", VISIT, "if now >= until else", "if now >= until + 60 else", OFFERS),
    Bug(
        "a pool without a free thread is offered",
        "brainq/runtime/processes/pool_threads.py",
        "elif (free := self._free.get(pool, 0)) > 0:",
        "elif (free := self._free.get(pool, 1)) >= 0:",
        OFFERS,
    ),
    Bug(
        "a paused pool is offered",
        VISIT,
        "for queue in served}.difference(paused)",
        "for queue in served}",
        OFFERS,
    ),
    Bug(
        "a thread that no script has used is not given back",
        VISIT,
        "            self._visit.threads.give_back(pool)\n",
        "            pass\n",
        OFFERS,
    ),
    Bug(
        "a slow call counts to the pool of the turn that it belongs to",
        VISIT,
        "        if pool != self._counted:\n            self.threads.give_back(self._counted)\n",
        "        if False:\n",
        OFFERS,
    ),
    Bug(
        "the end of a message does not return the thread to its pool",
        VISIT,
        "            self.threads.move(self._counted, self._pool)\n",
        "            pass\n",
        OFFERS,
    ),
    Bug(
        "a stop between two works is missed",
        VISIT,
        "        if self._stop:\n            callback(self._stop)\n",
        "",
        OFFERS,
    ),
    Bug(
        "a failure of continued work keeps a thread of its pool",
        VISITS,
        "            return did\n        finally:\n            visit.end()\n",
        "            visit.end()\n            return did\n        finally:\n            pass\n",
        HANDLED,
    ),
    Bug(
        "a visit goes on in a thread that its function keeps",
        VISITS,
        "            finally:\n                visit.end()\n            return did_first\n",
        "            finally:\n                pass\n            return did_first\n",
        HANDLED,
    ),
    Bug(
        "a death is not noticed by the names of continued claims",
        VISITS,
        'return f"v{next(self._numbers)}@{self._wiring.owner}"',
        'return f"v{next(self._numbers)}"',
        HANDLED,
    ),
    Bug("BRAINQ_STAY=0 changes nothing", VISITS, "self._is_on = wiring.settings.stay and ", "self._is_on = ", WHOLE),
    Bug(
        "a thread continues though doorbells are elsewhere",
        VISITS,
        'wiring.settings.stay and wiring.settings.doorbell == "transactional"',
        "wiring.settings.stay",
        HANDLED,
    ),
    Bug(
        "a write is continued with before its intent is stored",
        "brainq/engine/calls/run.py",
        "        if not claim.effect.is_read:\n            word",
        "        if not claim.effect.is_read and call.visit is None:\n            word",
        WHOLE,
    ),
    Bug(
        "monitors are not told that continued work begins",
        VISITS,
        "        events.began(claim)\n",
        "",
        (*HANDLED, *SEEN),
    ),
    Bug(
        "monitors see a continued step under the id of the next one",
        "brainq/workers/tasks/task_events.py",
        "        fence = claim.fence - 1\n",
        "        fence = claim.fence\n",
        SEEN,
    ),
    Bug(
        "declined offers are not counted",
        "brainq/adapters/redis/opened.py",
        "        COUNTERS.add(m.DECLINED, reason)\n",
        "        pass\n",
        WHOLE,
    ),
)
