"""Bugs of the decision record, and of what is told of calls and children that no worker ended."""

from __future__ import annotations

from ops.mutants.bug import Bug

RECORD = ("tests/integration/test_decisions.py",)
STRATEGY = ("tests/unit/finalize/test_decision.py",)

BUGS = (
    Bug(
        "retrieval is taken for the web",
        "brainq/finalize/steps/decision.py",
        'if "web_search" in used:',
        'if used & (RETRIEVAL_TOOLS | {"web_search"}):',
        STRATEGY,
    ),
    Bug(
        "a brain's own decision store is written to, and SQL too",
        "brainq/finalize/steps/decision.py",
        "        if own is None:\n            context.records.record_decision(claim, record)\n            return\n",
        "        context.records.record_decision(claim, record)\n        if own is None:\n            return\n",
        RECORD,
    ),
    Bug(
        "a decision store gets another step key each time",
        "brainq/finalize/steps/decision.py",
        "own.write(record, claim.step_key)",
        'own.write(record, f"{claim.step_key}:{claim.tries}")',
        RECORD,
    ),
    Bug(
        "a decision record is read in SQL though its brain keeps it elsewhere",
        "brainq/wiring/decisions.py",
        "if brain is None or brain.decisions is None:",
        "if brain is None or brain.decisions is not None:",
        RECORD,
    ),
    Bug(
        "a list by strategy has turns that have not ended",
        "brainq/contracts/listing.py",
        "            and self.strategy is None\n",
        "",
        RECORD,
    ),
    Bug(
        "a turn whose decision record is elsewhere is never old enough to prune",
        "brainq/store/prune.py",
        'finalizer_steps.c.state.in_(("dead", "done")),',
        'finalizer_steps.c.state.in_(("dead",)),',
        RECORD,
    ),
    Bug(
        "the post hook misses results that came early",
        "brainq/people/posthook.py",
        'NEWS = frozenset({"SETTLED", "EARLY"})',
        'NEWS = frozenset({"SETTLED"})',
        ("tests/unit/people/test_posthook.py",),
    ),
    Bug(
        "a child's outcome that comes again after a crash is not recorded",
        "brainq/people/children.py",
        'in ("SETTLED", "EARLY", "USED")',
        'in ("SETTLED", "EARLY")',
        ("tests/unit/people/test_children.py",),
    ),
)
