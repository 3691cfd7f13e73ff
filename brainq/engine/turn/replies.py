"""The handling of a model's reply: an answer, calls to commit, or a note about a reply that cannot be used."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from brainq.contracts.claim import CallClaim, CallsOverBudget, Opened, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.model import FinishKind, ModelReply
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.answer_schema import read_answer
from brainq.engine.models.asking.bill import ReplyCost
from brainq.engine.turn.call_plan import CallPlan, CallPlanner, approval_rows, deny_over_budget
from brainq.engine.turn.decide import End
from brainq.engine.turn.owned_turn import Did, LoopEnd, Lost, OwnedTurn, StepOutcome, did_or_lost
from brainq.engine.visit import AFTER_CALLS
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.adapters.sql.repositories.approvals import Approvals

log = logger("brainq.turn")
CALLS_COMMITTED = "committed calls"
MAX_CUT_REPLIES = 3  # in a turn, each of them paid for; the next one ends the turn
MAX_WRONG_OUTPUTS = 2  # in a turn, each of them paid for; the next one ends the turn
OUTPUT_PROBLEM = "output"  # the `problem` of an answer that does not fit its schema
MAX_SCHEMA_CHARS = 8_000  # of the schema that the model is shown, because not every service enforces it
_REMEDIES = {
    FinishKind.LENGTH: "Write less at once: make fewer calls in one reply, and spread long arguments over "
    "several calls.",
    FinishKind.FILTERED: "Go on another way, or tell the user what cannot be done.",
    FinishKind.BROKEN: "Write it again.",
}
_CUT_ENDS = {
    FinishKind.LENGTH: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply was cut off"),
    FinishKind.FILTERED: End(Ending.COMPLETED, StopReason.FILTERED, "the model's reply was filtered"),
    FinishKind.BROKEN: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply broke off"),
}


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The decision to run no call of the reply and to call the model again. `text` explains why to the model, and
    `problem` is the word for events."""

    problem: str
    text: str


def judge_finish(view: TurnView, step: int, reply: ModelReply) -> AskAgain | End | None:
    """Return what to do with the reply of `step`. Returns None if the reply is complete and can be used.

    A text that was cut or filtered ends the turn. For a reply with calls the model is called again, as long as the turn
    has steps left and has not had too many such replies.
    """
    finish = reply.finish
    if finish is FinishKind.WHOLE:
        return None
    again = bool(reply.calls) or finish is FinishKind.BROKEN
    if again and step < view.steps_max and cut_replies(view) < MAX_CUT_REPLIES:
        return AskAgain(finish.value, _problem_text(finish, reply))
    return _CUT_ENDS[finish]


def judge_output(view: TurnView, step: int, text: str, schema: dict[str, Any]) -> AskAgain | End | None:
    """Return what to do with the answer of `step`. Returns None if the answer fits the schema."""
    _, problem = read_answer(schema, text)
    if not problem:
        return None
    if step < view.steps_max and _count(view, {OUTPUT_PROBLEM}) < MAX_WRONG_OUTPUTS:
        shown = json.dumps(schema, ensure_ascii=False)
        asked = f" The schema: {shown}" if len(shown) <= MAX_SCHEMA_CHARS else ""
        return AskAgain(
            OUTPUT_PROBLEM,
            f"Your answer does not fit the output schema: {problem}. Answer again, with JSON that fits it and nothing "
            f"else.{asked}",
        )
    why = f"the answer does not fit its schema: {problem}"
    return End(Ending.COMPLETED, StopReason.INVALID_OUTPUT, why, error=why)


def cut_replies(view: TurnView) -> int:
    """Return how many replies of this turn were incomplete, as far as the turn's history still has them."""
    return _count(view, {finish.value for finish in FinishKind})


def _count(view: TurnView, problems: set[str]) -> int:
    return sum((message.extra or {}).get("problem") in problems for message in view.own_messages)


def problem_note(again: AskAgain, turn_id: str, step: int) -> Message:
    """Return the note that follows a reply without calls. In a reply with calls, the tool messages carry the text."""
    return Message(
        role="user",
        content=f"[Note from the runtime, not from the user: {again.text}]",
        turn=turn_id,
        step=step,
        extra={"note": "problem"},
    )


def _problem_text(finish: FinishKind, reply: ModelReply) -> str:
    tokens = reply.usage.output_tokens
    what = {
        FinishKind.LENGTH: f"was cut off at {tokens} tokens" if tokens else "was cut off at its length limit",
        FinishKind.FILTERED: "was stopped by a content filter",
        FinishKind.BROKEN: f"broke off ({reply.finish_reason[:40]})",
    }[finish]
    ran = "; none of its calls ran" if reply.calls else ""
    return f"Your reply {what}{ran}. {_REMEDIES[finish]}"


@dataclass(frozen=True, slots=True)
class StepReply:
    """The reply to one step, which is paid for. `tail` is the end of its text, which is not published yet."""

    step: int
    reply: ModelReply
    cost: ReplyCost
    tail: str


def commit_in_visit(
    turn: OwnedTurn, commit: Callable[..., CallsOverBudget | Opened | Literal["COMMITTED", "LOST"]]
) -> Did | Lost | CallsOverBudget:
    """Commit a step. The thread may continue with what that opens."""
    if turn.visit is None:
        done = turn.retry(commit)
        return done if isinstance(done, CallsOverBudget) else did_or_lost(done != "LOST", CALLS_COMMITTED)
    with turn.visit.offering(AFTER_CALLS) as offering:
        done = turn.retry(partial(commit, offer=offering.offer))
        if isinstance(done, CallsOverBudget):
            return done
        if isinstance(done, TurnClaim | CallClaim):
            offering.take(done)
        return did_or_lost(done != "LOST", CALLS_COMMITTED)


@dataclass(kw_only=True, eq=False)
class ReplyHandler:
    """The handler of model replies. A complete reply has been paid for, so while Redis or SQL is unavailable it is kept
    and committed later."""

    brain: Brain
    turns: RedisTurns
    approvals: Approvals

    def handle(self, turn: OwnedTurn, made: StepReply) -> StepOutcome:
        """Commit the calls of the reply, call the model again, or return the turn's end."""
        view, reply = turn.view, made.reply
        if reply.calls and reply.finish is FinishKind.WHOLE:
            return self._commit_calls(turn, made)
        judged = judge_finish(view, made.step, reply)
        schema = view.request.output_schema
        if judged is None and schema is not None:
            judged = judge_output(view, made.step, reply.text, schema)
        if isinstance(judged, AskAgain):
            return self._ask_again(turn, made, judged)
        answered = bool(reply.text.strip())
        end = judged or End(
            Ending.COMPLETED,
            StopReason.ANSWERED if answered else StopReason.EMPTY_REPLY,
            "the model answered" if answered else "the model's reply was empty",
        )
        text, turn_id = reply.text if answered else end.text, turn.claim.turn_id
        message = Message(role="assistant", content=text, turn=turn_id, step=made.step, reasoning=reply.reasoning)
        return LoopEnd(end, message, made.cost.spend, made.tail, made.cost.lost)

    def _commit_calls(self, turn: OwnedTurn, made: StepReply) -> Did | Lost:
        """Judge the calls, plan those that may run, and commit them. Calls that the budget refuses are denied."""
        claim, cost, planner = turn.claim, made.cost, CallPlanner(self.brain, turn.view, made.step, made.reply)
        verdicts = planner.judge()
        plan = planner.plan(verdicts)
        if any(call.ask is not None for call in plan.calls):
            refused = turn.retry(partial(self._over_budget, claim, plan))
            plan = planner.plan(deny_over_budget(verdicts, refused))
            turn.retry(partial(self._ask_people, claim, plan))
        while True:
            commit = partial(self.turns.commit_calls, claim, made.step, plan.message, plan.calls, cost.spend, made.tail)
            done = commit_in_visit(turn, partial(commit, plan.block_tools, lost=cost.lost))
            if not isinstance(done, CallsOverBudget):
                return done
            # The budget now includes the other calls, so the next commit cannot be refused.
            plan = planner.plan(deny_over_budget(verdicts, done.calls))

    def _ask_again(self, turn: OwnedTurn, made: StepReply, again: AskAgain) -> Did | Lost:
        """Commit the reply without running any of its calls. The next step reads the reason."""
        claim, step, cost = turn.claim, made.step, made.cost
        log.info("reply not acted on", turn_id=claim.turn_id, step=step, why=again.problem)
        plan = CallPlanner(self.brain, turn.view, step, made.reply).refuse(again.problem, again.text)
        notes = () if plan.calls else (problem_note(again, claim.turn_id, step),)
        commit = partial(self.turns.commit_calls, claim, step, plan.message, plan.calls, cost.spend, made.tail)
        done = commit_in_visit(turn, partial(commit, problem=again.problem, notes=notes, lost=cost.lost))
        assert not isinstance(done, CallsOverBudget)  # none of its calls may run
        return done

    def _over_budget(self, claim: TurnClaim, plan: CallPlan) -> list[str]:
        """Charge the calls to the budget before people are asked to approve them. Returns the refused calls."""
        words = self.turns.claim_budget(claim.session_id, claim.turn_id, "tool_calls", plan.allowed)
        return [call for call, word in zip(plan.allowed, words, strict=True) if word in ("SPENT", "EXPIRED")]

    def _ask_people(self, claim: TurnClaim, plan: CallPlan) -> None:
        """Insert the approval requests into SQL, before it can be seen that they are pending."""
        rows = approval_rows(claim, plan.calls, self.brain.redact_logs)
        if rows:
            self.approvals.request(rows)
