"""What becomes of a model's reply: an answer, calls that are committed, or words to the model about it."""

from __future__ import annotations

from functools import partial

from brainq.brain.brain import Brain
from brainq.contracts.claim import CallsOverBudget, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.ports.redis_turns import Budgets, Turns
from brainq.ports.sql import ApprovalRows
from brainq.turn.decide import End
from brainq.turn.outage import OutageRetry
from brainq.turn.plan.approval import approval_rows
from brainq.turn.plan.calls import CallPlan, deny_over_budget, judge_reply, plan_calls, refuse_calls
from brainq.turn.plan.cut_replies import AskAgain, judge_finish, judge_output, problem_note
from brainq.turn.step_request import CallsCommitted, LoopEnd, ReplyCost, StepOutcome

log = logger("brainq.turn")


class ReplyHandler:
    """Acts on replies. A finished one is paid for: while Redis or SQL is away it is kept, and committed later."""

    def __init__(self, *, brain: Brain, turns: Turns, budgets: Budgets, approvals: ApprovalRows) -> None:
        self._brain = brain
        self._turns = turns
        self._budgets = budgets
        self._approvals = approvals

    def handle(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        cost: ReplyCost,
        tail: str,
        trying: OutageRetry,
    ) -> StepOutcome:
        """`tail` is the text that is not published yet. None: the turn was lost."""
        judged = judge_finish(view, step, reply)
        schema = view.request.output_schema
        if judged is None and schema is not None and not reply.calls:
            judged = judge_output(view, step, reply.text, schema)
        if isinstance(judged, AskAgain):
            return self._ask_again(claim, view, step, reply, cost, tail, judged, trying)
        if isinstance(judged, End) or not reply.calls:
            answered = bool(reply.text.strip())
            end = judged or End(
                Ending.COMPLETED,
                StopReason.ANSWERED if answered else StopReason.EMPTY_REPLY,
                "the model answered" if answered else "the model's reply was empty",
            )
            text = reply.text if answered else end.text
            message = Message(role="assistant", content=text, turn=claim.turn_id, step=step, reasoning=reply.reasoning)
            return LoopEnd(end, message, cost.spend, tail, cost.lost)
        return self._commit_calls(claim, view, step, reply, cost, tail, trying)

    def _commit_calls(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        cost: ReplyCost,
        tail: str,
        trying: OutageRetry,
    ) -> StepOutcome:
        """Judge the calls, plan those that may run, and commit them. Those that the budget refuses are denied."""
        verdicts = judge_reply(self._brain, view, step, reply)
        plan = plan_calls(self._brain, view, step, reply, verdicts)
        if any(call.ask is not None for call in plan.calls):
            refused = trying(partial(self._over_budget, claim, plan))
            plan = plan_calls(self._brain, view, step, reply, deny_over_budget(verdicts, refused))
            trying(partial(self._ask_people, claim, plan))
        while True:
            commit = partial(self._turns.commit_calls, claim, step, plan.message, plan.calls, cost.spend, tail)
            done = trying(partial(commit, plan.block_tools, lost=cost.lost))
            if not isinstance(done, CallsOverBudget):
                return CallsCommitted() if done == "COMMITTED" else None
            # The others are paid for now, so that the next commit is refused nothing.
            plan = plan_calls(self._brain, view, step, reply, deny_over_budget(verdicts, done.calls))

    def _ask_again(
        self,
        claim: TurnClaim,
        view: TurnView,
        step: int,
        reply: ModelReply,
        cost: ReplyCost,
        tail: str,
        tell: AskAgain,
        trying: OutageRetry,
    ) -> StepOutcome:
        """Nothing of the reply is acted on; the next step reads why."""
        log.info("reply not acted on", turn_id=claim.turn_id, step=step, why=tell.problem)
        plan = refuse_calls(self._brain, view, step, reply, tell)
        notes = () if plan.calls else (problem_note(tell, claim.turn_id, step),)
        done = trying(
            lambda: self._turns.commit_calls(
                claim, step, plan.message, plan.calls, cost.spend, tail, (), tell.problem, notes, cost.lost
            )
        )
        return CallsCommitted() if done == "COMMITTED" else None

    def _over_budget(self, claim: TurnClaim, plan: CallPlan) -> list[str]:
        """Pay for the calls before the commit does: nobody is asked about one that the budget refuses."""
        words = self._budgets.claim(claim.session_id, claim.turn_id, "tool_calls", plan.allowed)
        return [call for call, word in zip(plan.allowed, words, strict=True) if word in ("SPENT", "EXPIRED")]

    def _ask_people(self, claim: TurnClaim, plan: CallPlan) -> None:
        """Write down what people will be asked, before anybody can see that they are."""
        asked = approval_rows(claim, plan.calls, self._brain.redact_logs)
        if asked:
            self._approvals.request(asked)
