"""A model that makes any reply."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from random import Random

from brainq.adapters.redis.turns import RedisTurns
from brainq.contracts.budgets import MoneyRefusal
from brainq.contracts.claim import CallsOverBudget, PlannedCall, StepOverBudget, StepStart, TurnClaim, TurnStart
from brainq.contracts.ids import call_id
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import Spend
from brainq.contracts.people import ApprovalRequirement
from brainq.contracts.rate import RateWait
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.engine.models.asking.deferred import PermitDeferred
from brainq.engine.turn.begin import begin_history
from brainq.engine.turn.call_plan import Schedulable, ToolScheduler
from brainq.engine.turn.decide import BUDGET_ENDS, End
from brainq.engine.turn.owned_turn import LOST, Did, LoopEnd, Lost, OwnedTurn, StepOutcome
from brainq.engine.turn.prompt.request_messages import TurnMailbox, input_messages, readiness_word
from brainq.engine.turn.replies import commit_in_visit
from tests.support.model.auxiliary import compact, open_wave, outcome_of_compaction
from tests.support.model.rules import BrokenRule
from tests.support.model.stand_ins import EFFECTS

MOST_CALLS = 3
OVER = ("SPENT", "EXPIRED")
ANSWERED = End(Ending.COMPLETED, StopReason.ANSWERED, "the model answered")
MODEL_FAILED = End(Ending.FAILED, StopReason.MODEL_ERROR, "the model could not be asked", "it is away")


class RandomThinker:
    """A stand-in for `engine.turn.step.StepPipeline`, with the same scripts in the same order, and drawn replies."""

    def __init__(self, rng: Random, turns: RedisTurns, asks: Callable[[], bool]) -> None:
        self._rng = rng
        self._asks = asks
        self._turns = turns

    def run(self, turn: OwnedTurn) -> StepOutcome:
        rng, claim, view, turn_id = self._rng, turn.claim, turn.view, turn.claim.turn_id
        start: TurnStart | None = None
        if not view.begun:
            start = TurnStart((Message(role="user", content="do", turn=turn_id),), "h")
        if start is not None and rng.random() < 0.5:
            if not self._turns.begin(claim, start):
                return LOST
            begin_history(view, start)
            start = None
        if start is None and not view.opened and view.step == 0 and rng.random() < 0.4:
            return open_wave(rng, self._turns, claim)
        if start is None and rng.random() < 0.1:
            outcome = outcome_of_compaction(compact(self._turns, claim, view))
            if outcome is not None:
                return outcome
        drain = TurnMailbox(view.inputs).drain()
        step_start = StepStart(
            estimate=10,
            most_tokens=0,
            max_usd=None,
            drained=len(view.inputs),
            inputs=input_messages(drain, turn_id, view.step + 1),
            readiness=readiness_word(drain),
            turn=start,
        )
        for again in (rng.random() < 0.1, False):
            begun = self._turns.begin_step(claim, step_start, self._turns.mark(claim))
            step_start = step_start.for_retry
            if begun == "LOST":
                return LOST
            assert not isinstance(begun, MoneyRefusal), "no budget of money is set here"
            if isinstance(begun, StepOverBudget):
                return LoopEnd(BUDGET_ENDS[begun.what])
            step, attempt = begun.step, begun.attempt
            if rng.random() < 0.2 and not self._turns.publish_delta(claim, step, attempt, "text"):
                return LOST
            if turn.is_lost():
                return LOST
            if not again:
                break
        roll = rng.random()
        if roll < 0.03:
            return LoopEnd(MODEL_FAILED)
        if roll < 0.25:
            message = Message(role="assistant", content="done", turn=turn_id, step=step)
            return LoopEnd(ANSWERED, message, Spend(step=step, input_tokens=5, output_tokens=5))
        if roll < 0.3:
            raise PermitDeferred("m:m", RateWait(rng.choice((0.5, 4.0, 12.0)), "stop"))
        return self._ask(turn, step)

    def _ask(self, turn: OwnedTurn, step: int) -> StepOutcome:
        rng, claim = self._rng, turn.claim
        ids = [call_id(step, index) for index in range(rng.randint(1, MOST_CALLS))]
        denied = {place: rng.choice(("duplicate", "blocked", "validation")) for place in ids if rng.random() < 0.1}
        allowed = [place for place in ids if place not in denied]
        if allowed and rng.random() < 0.3:
            words = self._turns.claim_budget(claim.session_id, claim.turn_id, "tool_calls", allowed)
            refused = [place for place, word in zip(allowed, words, strict=True) if word in OVER]
            denied |= dict.fromkeys(refused, "budget")
        done = self._commit(turn, step, ids, denied)
        if isinstance(done, CallsOverBudget):
            done = self._commit(turn, step, ids, denied | dict.fromkeys(done.calls, "budget"))
        if isinstance(done, CallsOverBudget):
            raise BrokenRule(f"calls that are paid for were refused: {done}")
        return done

    def _commit(
        self, turn: OwnedTurn, step: int, ids: list[str], denied: dict[str, str]
    ) -> Did | Lost | CallsOverBudget:
        claim = turn.claim
        calls = self._plan(claim, step, ids, denied)
        message = Message(
            role="assistant",
            calls=tuple(ToolCall(id=call.id, name=call.tool, arguments={}) for call in calls),
            turn=claim.turn_id,
            step=step,
        )
        spend = Spend(step=step, input_tokens=5)
        return commit_in_visit(turn, partial(self._turns.commit_calls, claim, step, message, calls, spend, "", ()))

    def _plan(self, claim: TurnClaim, step: int, ids: list[str], denied: dict[str, str]) -> list[PlannedCall]:
        effects = [Effect.READ_ONLY if place in denied else self._rng.choice(EFFECTS) for place in ids]
        running = [Schedulable(effect) for place, effect in zip(ids, effects, strict=True) if place not in denied]
        waves = iter(ToolScheduler().waves(running))
        calls: list[PlannedCall] = []
        for place, effect in zip(ids, effects, strict=True):
            if place in denied:
                calls.append(_denied(claim.turn_id, step, place, denied[place]))
            else:
                calls.append(self._call(claim, place, effect, next(waves)))
        return calls

    def _call(self, claim: TurnClaim, place: str, effect: Effect, wave: int) -> PlannedCall:
        rng = self._rng
        own = f"s:{claim.session_id}"
        lanes = () if effect.is_read else rng.choice(((own,), ("A",), ("A",), ("A",), ("A", "B"), ("B", own)))
        again = not effect.is_read and rng.random() < 0.4
        # The call carries what the rules need to know of it: a step that is asked again draws another plan.
        arguments = {"lanes": lanes, "write": not effect.is_read, "again": again, "hash": "h"}
        return PlannedCall(
            id=place,
            tool="tool",
            effect=effect,
            wave=wave,
            arguments_json=json.dumps({"arguments": arguments, "hash": "h", "lanes": lanes}),
            args_hash="h",
            fingerprint=rng.choice(("", f"f{rng.randint(1, 3)}")),
            cap_ms=1000,
            lanes=lanes,
            idempotent=again,
            ask=ApprovalRequirement(reason="it may be dear", timeout_s=3600.0) if self._asks() else None,
        )


def _denied(turn_id: str, step: int, place: str, reason: str) -> PlannedCall:
    message = Message(role="tool", content="Not run.", call_id=place, name="tool", turn=turn_id, step=step)
    return PlannedCall(
        id=place,
        tool="tool",
        effect=Effect.READ_ONLY,
        wave=1,
        arguments_json="",
        args_hash="",
        fingerprint="",
        cap_ms=0,
        denied=reason,
        message_json=message.model_dump_json(exclude_defaults=True),
    )
