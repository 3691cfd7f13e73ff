"""Citations under the answer: at most eight local and eight of the web."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.contracts.status import Ending
from brainq.finalize.result import citations, with_citations
from brainq.finalize.step import StepContext


class AppendCitations:
    """Appends the list of sources, where the turn or the brain asks for it. Safe to repeat."""

    name = "citations"
    needs = ()
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return True  # each turn may ask for it

    def run(self, context: StepContext) -> None:
        turn = context.turn
        wanted = turn.request.show_citations
        if not (context.brain.show_citations if wanted is None else wanted):
            return
        if turn.ending is not Ending.COMPLETED or turn.request.output_schema is not None:
            return  # what is to be read as JSON has nothing under it
        text = with_citations(turn.text, citations(turn, "local"), citations(turn, "web"))
        if text != turn.text:
            context.chain.set_text(context.claim.session_id, context.claim.turn_id, text)
