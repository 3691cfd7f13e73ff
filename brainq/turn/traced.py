"""The coordinator of a process whose spans somebody records."""

from __future__ import annotations

from brainq.contracts.claim import TurnClaim
from brainq.contracts.view import TurnView
from brainq.observe import telemetry_names as names
from brainq.observe.content import keeping_out
from brainq.observe.turn_spans import advance_span
from brainq.turn.advance import Coordinator, Ownership
from brainq.turn.brain_turns import BrainTurns
from brainq.turn.patience import Trying


class TracedCoordinator(Coordinator):
    """Opens a span for each advance of a turn that it claims."""

    def _acted(
        self, work: BrainTurns, claim: TurnClaim, view: TurnView, ownership: Ownership, trying: Trying
    ) -> str:
        parked = self._turns.parked_calls(claim, view.step) if view.parked_ms else ()
        with advance_span(claim, view, parked) as span, keeping_out(work.brain.redact_logs):
            did = super()._acted(work, claim, view, ownership, trying)
            span.note({names.DID: did})
            return did
