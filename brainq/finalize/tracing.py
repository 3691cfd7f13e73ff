"""The finalizer of a process whose spans somebody records."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.turn import TurnResult
from brainq.finalize.finalizer import RESULT, TurnFinalizer
from brainq.finalize.steps import FinalStep, StepContext
from brainq.observe.logs import logger
from brainq.observe.model_spans import excluding_content
from brainq.observe.turn_spans import final_span, record_turn

log = logger("brainq.finalize")


class TracedFinalizer(TurnFinalizer):
    """Opens a span for each try of a step, and records the turn's own once the result is out."""

    def run_claimed(self, claim: FinalStepClaim) -> None:
        with self._span(claim):
            super().run_claimed(claim)

    def _run(self, step: FinalStep, context: StepContext, *, bounded: bool = True) -> None:
        with self._span(context.claim):
            super()._run(step, context, bounded=bounded)

    def _go_on(
        self, claim: FinalStepClaim, until: float, outgoing: Sequence[TurnResult] = ()
    ) -> tuple[str, FinalStepClaim | None]:
        did = super()._go_on(claim, until, outgoing)
        if claim.step == RESULT and did[0] != "lost":
            self._record_turn(claim)
        return did

    @contextmanager
    def _span(self, claim: FinalStepClaim) -> Generator[None]:
        with final_span(claim, self._read.turn(claim).request), excluding_content(self._work(claim).redacts):
            yield

    def _record_turn(self, claim: FinalStepClaim) -> None:
        """The result is out: nothing that telemetry does may fail the step."""
        try:
            turn = self._read.turn(claim)
            record_turn(turn, self._work(claim).brain.name)
        except Exception as failure:
            log.warning("turn not recorded in its trace", turn_id=claim.turn_id, why=type(failure).__name__)
