"""The assistant's message and the turn's result, into SQL."""

from __future__ import annotations

from brainq.brain import Brain
from brainq.contracts.turn import TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.finalize.result import result_of, sent_before
from brainq.finalize.step import StepContext
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.metrics.turns import count_lost, count_turn
from brainq.providers.resolve import provider_name

REVIEW = (
    "[A review of this conversation was asked for.]"  # what stays of the question: only its outcome is kept
)


class LogAnswer:
    """Writes the answer to the event log and the result to the turn's row, in one transaction with its step."""

    name = "log"
    needs = ("citations",)
    limit_s: float | None = None  # no code of the brain
    reads_said = True

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        turn, claim = context.turn, context.claim
        # A result that the sweeper sent before is the one the caller has: SQL keeps that, with its warnings.
        sent = context.chain.published(claim.session_id, claim.turn_id) if claim.sent else None
        result, details = sent or result_of(turn, sent_before(claim.failing)), context.details()
        asked, answered = logged(turn.request, result.text, begun=bool(details.messages))
        if context.records.record_answer(claim, result, context.brain.redact_logs, details, asked, answered):
            _count(context.brain, turn, result, details)


def _count(brain: Brain, turn: EndedTurn, result: TurnResult, details: TurnDetails) -> None:
    request = turn.request
    count_turn(
        COUNTERS,
        result,
        details.trace,
        brain=request.brain or brain.name,
        wait_ms=turn.wait_ms,
        has_tool=lambda name: brain.tools.get(name) is not None,
        client_tools=[tool.name for tool in request.client_tools],
    )
    count_lost(COUNTERS, result.spends, provider_name(brain.model, request.model, request.provider))


def logged(request: TurnRequest, text: str, *, begun: bool) -> tuple[str, str]:
    """What the session's event log gets of a turn that has ended: (from the user, from the assistant), "" for
    nothing."""
    match request.kind:
        case "chat":
            return "" if begun else request.said, text
        case "review":
            return REVIEW, text
        case "compact":
            return "", ""
