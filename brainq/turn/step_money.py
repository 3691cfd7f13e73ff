"""Begins attempts at steps under budgets: what is reserved, what SQL grants, and what is done at a budget's cap."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from brainq.brain.brain import Brain
from brainq.contracts.budgets import AtCap, MoneyRefusal
from brainq.contracts.claim import StepAttempt, StepOverBudget, StepStart
from brainq.contracts.status import Ending, StopReason
from brainq.models.asking.bill import Bill
from brainq.observe.logs import logger
from brainq.ports.people import Budgets
from brainq.ports.redis_turns import Turns
from brainq.turn.begin import OwnedTurn
from brainq.turn.decide import BUDGET_ENDS, LIMIT_HINT, End
from brainq.turn.step_request import LoopEnd, StepPostponed, StepRequest

log = logger("brainq.turn")
WAIT_S = 1.0  # for model calls in flight, whose bills may leave enough; up to twice as long
NO_TOOLS = "none"


@dataclass(frozen=True, slots=True)
class BegunStep:
    """An attempt that may ask its model. `asking` has no tools where the money is for a last answer."""

    attempt: StepAttempt
    asking: StepRequest


StepBegin = BegunStep | StepPostponed | LoopEnd | None
"""The attempt, or what comes in its place."""


class BeginAuxiliary(Protocol):
    """Begins a call beside the steps, held against `money`."""

    def __call__(self, *, money: str) -> MoneyRefusal | str: ...


@dataclass(kw_only=True, eq=False)
class StepMoney:
    """Begins attempts. None means that the turn was lost to another owner."""

    brain: Brain
    turns: Turns
    budgets: Budgets

    def begin(self, turn: OwnedTurn, asking: StepRequest, begin: StepStart, bill: Bill) -> StepBegin:
        """Begin an attempt, where the turn's limits and all budgets allow it."""
        claim, is_last = turn.claim, False
        mark, under_way = self.turns.mark(claim), bill.spends_so_far()
        windows = self.budgets.windows(claim.session_id, turn.view.request.brain or self.brain.name)
        least = under_way[0].cost_usd if under_way else None
        most = None if asking.setting.limits.max_output_tokens is None else begin.max_usd
        while True:
            money = self.budgets.asked(windows, most, least, leaves_room=not is_last)
            started = replace(begin, money=money) if money else begin
            step = turn.retry(partial(self.turns.begin_step, claim, started, mark, under_way))
            if step == "LOST":
                return None
            if isinstance(step, StepAttempt):
                return BegunStep(step, _without_tools(asking) if is_last else asking)
            if isinstance(step, StepOverBudget):
                return LoopEnd(BUDGET_ENDS[step.what], lost=())
            begin = replace(begin, lost=())  # it is charged
            at_cap = self.budgets.grant(windows, step)
            if at_cap is None:
                continue
            if at_cap.what == "finish" and not is_last:
                is_last = True
                continue
            return self._refused(turn, at_cap)

    def _refused(self, turn: OwnedTurn, at_cap: AtCap) -> StepBegin:
        claim = turn.claim
        match at_cap.what:
            case "wait":
                wait_s = WAIT_S * (1 + random.random())
                wait = partial(self.turns.wait_for_permit, claim, wait_s, wait_s, at_cap.name, None, ())
                return StepPostponed(f"waits for {at_cap.name}") if turn.retry(wait) == "WAITS" else None
            case "park":
                line, until_ms = self.budgets.line(at_cap), self.budgets.until_ms(at_cap)
                park = partial(self.turns.park_for_budget, claim, line, at_cap.name, until_ms, ())
                parked = turn.retry(park) == "PARKED"
                log.warning("turn parked, a budget is spent", turn_id=claim.turn_id, budget=at_cap.window.name)
                return StepPostponed(f"parked for {at_cap.name}") if parked else None
            case "refuse" | "finish":
                return LoopEnd(_spent_end(at_cap), lost=())


def begin_beside(turn: OwnedTurn, budgets: Budgets, brain: Brain, usd: float | None, begin: BeginAuxiliary) -> str:
    """Begin a model call beside the steps under budgets, by what `begin` makes of the money: its word, or `SPENT`."""
    windows = budgets.windows(turn.claim.session_id, turn.view.request.brain or brain.name)
    while True:
        word = turn.retry(partial(begin, money=budgets.asked(windows, usd, usd, leaves_room=True)))
        if not isinstance(word, MoneyRefusal):
            return word
        if budgets.grant(windows, word) is not None:
            return "SPENT"


def _without_tools(asking: StepRequest) -> StepRequest:
    """The model is to answer by what it knows. Its tools stay in the request: some services refuse a history with
    calls of tools that are not there."""
    options = asking.setting.options.model_copy(update={"tool_choice": NO_TOOLS})
    return replace(asking, setting=replace(asking.setting, options=options))


def _spent_end(at_cap: AtCap) -> End:
    text = f"The {at_cap.name} is spent, so I could not go on. {LIMIT_HINT}"
    return End(Ending.COMPLETED, StopReason.MAX_COST, f"{at_cap.name} is spent", standard_text=text)
