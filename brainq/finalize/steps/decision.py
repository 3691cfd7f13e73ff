"""The decision record."""

from __future__ import annotations

from collections.abc import Iterable

from brainq.brain import Brain
from brainq.contracts.decision import RuntimeDecisionRecord, Strategy
from brainq.contracts.view import EndedTurn
from brainq.finalize.step import StepContext
from brainq.providers.within import within

LIMIT_S = 60.0
RETRIEVAL_TOOLS = frozenset({"local_search", "get_context_pack"})


def strategy_of(tools: Iterable[str]) -> Strategy:
    """How the turn came to its answer, by the tools that ran; the first match counts.

    >>> strategy_of([]), strategy_of(["read_note"]), strategy_of(["local_search", "web_search"])
    ('direct_answer', 'tool_assisted', 'web_augmented')
    """
    used = set(tools)
    if not used:
        return "direct_answer"
    if "web_search" in used:
        return "web_augmented"
    if used & RETRIEVAL_TOOLS:
        return "retrieval_augmented"
    return "tool_assisted"


class RecordDecision:
    """Writes one RuntimeDecisionRecord a turn: to SQL with the step's own row, or to a store of the brain's."""

    name = "decision"
    limit_s: float | None = None  # a store of the brain's own has a limit of its own

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        claim, own = context.claim, context.brain.decisions
        record = record_of(context.turn)
        if own is None:
            context.records.record_decision(claim, record)
            return
        within(LIMIT_S, "decision store", lambda: own.write(record, claim.step_key))
        context.records.note_done(claim)


def record_of(turn: EndedTurn) -> RuntimeDecisionRecord:
    return RuntimeDecisionRecord(
        turn_id=turn.request.turn_id,
        session_id=turn.request.session_id,
        turn_number=turn.turn_number,
        strategy=strategy_of(turn.tools),
        tools=turn.tools,
        context_hash=turn.context_hash,
        prompt_hash=turn.prompt_hash,
        elapsed_ms=turn.elapsed_ms,
        usage=turn.usage,
        ending=turn.ending,
        stop_reason=turn.stop_reason,
        prompt_id=turn.request.prompt_id,
        prompt_version=turn.request.prompt_version,
        prompt_tags=turn.request.prompt_tags,
    )
