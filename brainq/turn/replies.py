"""What becomes of a model's reply: an answer, calls that are committed, or words to the model about it."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.brain import Brain
from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.usage import Spend
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.ports.approval_rows import ApprovalRows
from brainq.ports.budgets import Budgets
from brainq.ports.turns import Turns
from brainq.turn.decide import End
from brainq.turn.outcome import Answer, Calls, StepOutcome
from brainq.turn.patience import Trying
from brainq.turn.planning.approval_rows import approval_rows
from brainq.turn.planning.plan import Plan, plan_calls, refuse_calls
from brainq.turn.planning.whole import TellModel, judge_output, judge_whole, told

log = logger("brainq.turn")


class Replies:
    """Acts on replies. A finished one is paid for: while Redis or SQL is away it is kept, and committed later."""

    def __init__(self, *, brain: Brain, turns: Turns, budgets: Budgets, approvals: ApprovalRows) -> None:
        self._brain = brain
        self._turns = turns
        self._budgets = budgets
        self._approvals = approvals

    def act(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        spend: Spend,
        tail: str,
        trying: Trying,
    ) -> StepOutcome:
        """`tail` is the text that readers were not told yet. None: the turn was lost."""
        judged = judge_whole(view, step, reply)
        schema = view.request.output_schema
        if judged is None and schema is not None and not reply.calls:
            judged = judge_output(view, step, reply.text, schema)
        if isinstance(judged, TellModel):
            return self._tell(claim, view, step, reply, spend, tail, judged, trying)
        if isinstance(judged, End) or not reply.calls:
            answered = bool(reply.text.strip())
            end = judged or End(
                Ending.COMPLETED,
                StopReason.ANSWERED if answered else StopReason.EMPTY_REPLY,
                "the model answered" if answered else "the model's reply was empty",
            )
            text = reply.text if answered else end.text
            message = Message(role="assistant", content=text, turn=claim.turn_id, step=step)
            return Answer(end, message, spend, tail)

        def claimed(ids: Sequence[str]) -> Sequence[str]:
            return trying(lambda: self._budgets.claim(claim.session_id, claim.turn_id, "tool_calls", ids))

        plan = plan_calls(self._brain, view, step, reply, claimed)
        trying(lambda: self._asks(claim, plan))
        committed = trying(
            lambda: self._turns.commit_calls(
                claim, step, plan.message, plan.calls, spend, tail, plan.block_tools
            )
        )
        return Calls() if committed else None

    def _tell(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        spend: Spend,
        tail: str,
        tell: TellModel,
        trying: Trying,
    ) -> StepOutcome:
        """Nothing of the reply is acted on; the next step reads why."""
        log.info("reply not acted on", turn_id=claim.turn_id, step=step, why=tell.problem)
        plan = refuse_calls(self._brain, view, step, reply, tell)
        notes = () if plan.calls else (told(tell, claim.turn_id, step),)
        committed = trying(
            lambda: self._turns.commit_calls(
                claim, step, plan.message, plan.calls, spend, tail, (), tell.problem, notes
            )
        )
        return Calls() if committed else None

    def _asks(self, claim: TurnClaim, plan: Plan) -> None:
        """Write down what people will be asked, before anybody can see that they are."""
        asked = approval_rows(claim, plan.calls, self._brain.redact_logs)
        if asked:
            self._approvals.ask(asked)
