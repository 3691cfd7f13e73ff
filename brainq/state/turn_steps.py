"""The steps of a turn in Redis: its begin, each model call, and what a reply asks for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Literal

from brainq.contracts.claim import (
    CallsOverBudget,
    PlannedCall,
    StepAttempt,
    StepOverBudget,
    StepStart,
    TurnClaim,
    TurnStart,
)
from brainq.contracts.event import EventKind
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRetry, Spend
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import (
    as_json,
    plan_json,
    readiness_argument,
    running_attempt_argument,
    spends_json,
    usage_arguments,
)
from brainq.state.typed_scripts import Scripts, StepBeginGo, StepBeginSpent, StepCommitBudget


class TurnSteps:
    """What the owner of a turn does from its begin to its end, each one fenced script."""

    def __init__(self, scripts: Scripts, keys: Keys, outbox: Outbox) -> None:
        self._run = scripts
        self._keys = keys
        self._outbox = outbox
        # With the fence, which belongs to one claim, a number tells a request from its repetition.
        self._numbers = itertools.count(1)

    def mark(self, claim: TurnClaim) -> str:
        """A word that no other request of this turn's owners has."""
        return f"{claim.fence}:{next(self._numbers)}"

    def begin(self, claim: TurnClaim, start: TurnStart) -> bool:
        """Put the user's message into the session's history; False: the turn was lost. Beginning twice is beginning
        once."""
        return _begin_script(claim, start)(self._run) != "LOST"

    def begin_step(
        self, claim: TurnClaim, step: StepStart, mark: str
    ) -> StepAttempt | StepOverBudget | Literal["LOST"]:
        """Begin a step, or an attempt at it, and the turn with it, if it has not begun.

        mark   from `mark`: begun twice with the same one, the step is begun once
        """
        begin_step, turn = _begin_step_script(claim, step, mark), step.turn
        reply = begin_step(self._run) if turn is None else self._run.after(_begin_script(claim, turn), begin_step)
        match reply:
            case StepBeginGo():
                return StepAttempt(reply.step, reply.attempt)
            case StepBeginSpent():
                return StepOverBudget(reply.what)
            case "LOST":
                return "LOST"

    def publish_delta(
        self,
        claim: TurnClaim,
        step: int,
        attempt: int,
        text: str,
        mark: str = "",
        kind: EventKind = EventKind.TEXT_DELTA,
    ) -> bool:
        """Tell readers a part of the reply, or of what was thought; False when the turn was lost. With the same `mark`
        it is published once."""
        reply = self._run.step_delta(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            attempt=attempt,
            part=mark or self.mark(claim),
            kind=kind.value,
            text=text,
            under_way=running_attempt_argument(claim),
        )
        return reply == "OK"

    def publish_retry(self, claim: TurnClaim, step: int, attempt: int, retry: ModelRetry) -> bool:
        reply = self._run.step_retry(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            attempt=attempt,
            part=self.mark(claim),
            kind=retry.kind,
            wait_ms=round(retry.wait_s * 1000),
            model=retry.model,
        )
        return reply == "OK"

    def commit_calls(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str] = (),
        problem: str = "",
        notes: Sequence[Message] = (),
        lost: Sequence[Spend] = (),
    ) -> CallsOverBudget | Literal["COMMITTED", "LOST"]:
        """Pay for the calls of a reply, commit it, and open its first wave.

        Where the budget does not allow all calls nothing is committed: which of them are to be refused.

        problem   what is wrong with the reply, in a word for events; "" for nothing
        notes     follow a reply without calls, and tell the model
        lost      requests for it that broke off before
        """
        reply = self._run.step_commit(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            item=as_json(message),
            calls=plan_json(plan),
            block=block_tools,
            tail=tail,
            problem=problem,
            notes=[as_json(message) for message in notes],
            lost=spends_json(lost),
            **usage_arguments(spend),
        )
        self._outbox.flush(claim.session_id)
        return CallsOverBudget(reply.refused) if isinstance(reply, StepCommitBudget) else reply


def _begin_script(claim: TurnClaim, start: TurnStart) -> Callable[[Scripts], Literal["BEGUN", "ALREADY", "LOST"]]:
    items = [as_json(message) for message in start.messages]
    return lambda run: run.turn_begin(
        claim.session_id,
        claim.turn_id,
        owner=claim.owner,
        fence=claim.fence,
        prompt_hash=start.prompt_hash,
        earlier=start.earlier,
        items=items,
    )


def _begin_step_script(
    claim: TurnClaim, step: StepStart, mark: str
) -> Callable[[Scripts], StepBeginGo | StepBeginSpent | Literal["LOST"]]:
    ready, items = readiness_argument(step.readiness), [as_json(message) for message in step.inputs]
    return lambda run: run.step_begin(
        claim.session_id,
        claim.turn_id,
        owner=claim.owner,
        fence=claim.fence,
        asked=mark,
        estimate=step.estimate,
        tokens=step.most_tokens,
        estimate_usd=step.max_usd,
        shown=step.shown,
        lost=spends_json(step.lost),
        under_way=spends_json(step.under_way or None),
        drain=step.drained,
        ready=ready,
        full=step.full,
        items=items,
    )
