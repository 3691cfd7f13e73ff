"""The decision record."""

from __future__ import annotations

from collections.abc import Iterable

from brainq.brain import Brain
from brainq.contracts.decision import RuntimeDecisionRecord, Strategy
from brainq.finalize.step import StepContext

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
    """Writes one RuntimeDecisionRecord a turn, in one transaction with its step."""

    name = "decision"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn = context.turn
        context.records.record_decision(
            context.claim,
            RuntimeDecisionRecord(
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
            ),
        )
