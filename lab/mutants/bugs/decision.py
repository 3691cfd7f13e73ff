"""Bugs of the decision record, and of what is told of calls and children that no worker ended."""

from __future__ import annotations

from lab.mutants.bug import Bug

RECORD = ("tests/integration/finalize/test_decisions.py",)
STRATEGY = ("tests/unit/engine/finalize/test_decision.py",)

BUGS = (
    Bug(
        "retrieval is taken for the web",
        "brainq/engine/finalize/result.py",
        'if "web_search" in used:',
        'if used & (RETRIEVAL_TOOLS | {"web_search"}):',
        STRATEGY,
    ),
    Bug(
        "a brain's own decision store is written to, and SQL too",
        "brainq/engine/finalize/steps.py",
        "        if own is None:\n            context.records.record_decision(claim, record)\n            return\n",
        "        context.records.record_decision(claim, record)\n        if own is None:\n            return\n",
        RECORD,
    ),
    Bug(
        "a decision that SQL refuses fails the log",
        "brainq/engine/finalize/steps.py",
        "            if decision is None:\n                raise\n",
        "            raise\n",
        RECORD,
    ),
    Bug(
        "a decision that was refused counts as written",
        "brainq/engine/finalize/steps.py",
        "is_first, decision = context.records.record_answer(*rows), None",
        "is_first = context.records.record_answer(*rows)",
        RECORD,
    ),
    Bug(
        "the answer takes a decision along whose step is not seen as done",
        "brainq/adapters/sql/records.py",
        "if self.store.steps.write_done(connection, step.turn_id, step.step, step.step_key):",
        "if step:",
        RECORD,
    ),
    Bug(
        "the log writes the decision's row although the brain keeps decisions elsewhere",
        "brainq/engine/finalize/step_order.py",
        "is_ours = DECISION in self._steps and context.brain.decisions is None",
        "is_ours = DECISION in self._steps",
        (*RECORD, "tests/unit/engine/finalize/test_step_order.py"),
    ),
    Bug(
        "a step whose row the log wrote is claimed all the same",
        "brainq/engine/finalize/finalizer.py",
        "self._written = {*self._written, *context.written}",
        "self._written = ()",
        RECORD,
    ),
    Bug(
        "a decision store gets another step key each time",
        "brainq/engine/finalize/steps.py",
        "own.write(record, claim.step_key)",
        'own.write(record, f"{claim.step_key}:{claim.tries}")',
        RECORD,
    ),
    Bug(
        "a decision record is read in SQL though its brain keeps it elsewhere",
        "brainq/app/wiring/services.py",
        "if brain is None or brain.decisions is None:",
        "if brain is None or brain.decisions is not None:",
        RECORD,
    ),
    Bug(
        "a list by strategy has turns that have not ended",
        "brainq/contracts/history.py",
        "            and self.strategy is None\n",
        "",
        RECORD,
    ),
    Bug(
        "a turn whose decision record is elsewhere is never old enough to prune",
        "brainq/adapters/sql/prune.py",
        'finalizer_steps.c.state.in_(("dead", "done")),',
        'finalizer_steps.c.state.in_(("dead",)),',
        RECORD,
    ),
    Bug(
        "the post hook misses results that came early",
        "brainq/adapters/redis/lua/outside_complete.lua",
        ", outcome = outcome}))",
        "}))",
        ("tests/integration/finalize/test_post_hooks.py",),
    ),
    Bug(
        "the post hook misses waits that are over",
        "brainq/adapters/redis/lua/waits_expire.lua",
        "      note_hook_due(",
        "      local _ = (",
        ("tests/integration/finalize/test_post_hooks.py",),
    ),
    Bug(
        "the post hook misses rescued calls",
        "brainq/adapters/redis/lua/call_give_up.lua",
        "note_hook_due(call, outcome)\n",
        "",
        ("tests/integration/finalize/test_post_hooks.py",),
    ),
    Bug(
        "a post hook that was called is called at each claim",
        "brainq/engine/turn/coordinator.py",
        "    turn.retry(partial(turns.hooks_done, claim, view.hooks_due))\n",
        "",
        ("tests/integration/finalize/test_post_hooks.py",),
    ),
    Bug(
        "a child's outcome that comes again after a crash is not recorded",
        "brainq/engine/people/children.py",
        'in ("SETTLED", "EARLY", "USED")',
        'in ("SETTLED", "EARLY")',
        ("tests/unit/engine/people/test_children.py",),
    ),
)
