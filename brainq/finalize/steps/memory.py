"""What of the turn is worth remembering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from brainq.brain import Brain
from brainq.contracts.memory import MemoryExtractor, MemoryItem
from brainq.contracts.recorded import RecordedTurn
from brainq.finalize.recorded import recorded_turn
from brainq.finalize.step import StepContext
from brainq.providers.metering import metered
from brainq.providers.spent import spends_of
from brainq.providers.within import within

LIMIT_S = 60.0  # a model's 30 s and what follows when it used them up


class ExtractMemories:
    """Asks the extractor and writes what it found, in one transaction with the step.

    However the turn ended: what users say of themselves does not depend on the answer they got.
    """

    name = "memory"
    limit_s: float | None = None  # its part has a limit of its own

    def __init__(self, limit_s: float = LIMIT_S) -> None:
        self._limit_s = limit_s

    def is_configured(self, brain: Brain) -> bool:
        return brain.memory is not None and brain.memory.extractor is not None

    def run(self, context: StepContext) -> None:
        parts, turn, claim = context.parts, context.turn, context.claim
        if parts is None or parts.extractor is None:
            return
        recorded = recorded_turn(turn, context.conversation(), turn.context_pack_json, claim.step_key)
        scope = parts.scope(claim.session_id)
        with metered() as asked:
            items = _extracted(parts.extractor, recorded, self._limit_s)
        spends = spends_of("memory", tuple(asked), parts.price)
        context.records.record_memories(claim, scope, items, spends)


def _extracted(extractor: MemoryExtractor, turn: RecordedTurn, limit_s: float) -> Sequence[MemoryItem]:
    # The list is made inside the limit: a generator does its work when it is read.
    found: list[Any] = within(limit_s, "memory extractor", lambda: list(extractor.extract_turn(turn)))
    for item in found:
        if not isinstance(item, MemoryItem):
            raise TypeError(f"extract_turn returned a {type(item).__name__}; it must return MemoryItems")
    return found
