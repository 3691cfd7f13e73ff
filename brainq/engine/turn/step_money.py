"""Attempts at steps under budgets: the reservation of money, requests to SQL for more, and what happens at a cap."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from brainq.contracts.budgets import AtCap, MoneyHold, MoneyRefusal, reservation_for
from brainq.contracts.claim import StepAttempt, StepOverBudget, StepStart
from brainq.contracts.status import Ending, StopReason
from brainq.engine.brain.brain import Brain
from brainq.engine.models.asking.bill import Bill
from brainq.engine.turn.decide import BUDGET_ENDS, LIMIT_HINT, End
from brainq.engine.turn.owned_turn import LOST, LoopEnd, OwnedTurn, StepOutcome, Waits, did_or_lost
from brainq.engine.turn.step_request import StepRequest
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.engine.people.budgets import BudgetDesk

log = logger("brainq.turn")
WAIT_S = 1.0  # for model calls in progress, which may cost less than they reserved; the wait may be twice as long
NO_TOOLS = "none"


AuxiliaryWord = Literal["GO", "DONE", "SPENT", "LOST"]


@dataclass(frozen=True, slots=True)
class BegunStep:
    """An attempt that may send its request. `asking` forbids tools if the money only suffices for a last answer."""

    attempt: StepAttempt
    asking: StepRequest


@dataclass(frozen=True, slots=True)
class Try:
    """One try to begin an attempt. `is_last` means that a budget is at its cap and the money is for a last answer."""

    begin: StepStart
    is_last: bool = False


def next_try(refused: Try, at_cap: AtCap | None) -> Try | AtCap:
    """Return the next try after a budget has refused one. Returns the cap if there is no other way.

    at_cap   the cap that was reached; None if SQL has granted more money
    """
    charged = replace(refused, begin=replace(refused.begin, lost=()))  # the attempt before is charged by now
    if at_cap is None:
        return charged
    if at_cap.what == "finish" and not refused.is_last:
        return replace(charged, is_last=True)
    return at_cap


@dataclass(kw_only=True, eq=False)
class StepMoney:
    """The beginning of attempts within the limits of the turn and all budgets."""

    brain: Brain
    turns: RedisTurns
    budgets: BudgetDesk

    def begin(self, turn: OwnedTurn, asking: StepRequest, begin: StepStart, bill: Bill) -> BegunStep | StepOutcome:
        """Begin an attempt. Returns another outcome if the turn is lost, has to wait, or has to end."""
        mark, under_way = self.turns.mark(turn.claim), bill.spends_so_far()
        windows = self.budgets.windows(turn.claim.session_id, turn.view.request.brain or self.brain.name)
        least_usd = under_way[0].cost_usd if under_way else None
        usd = None if asking.setting.limits.max_output_tokens is None else begin.max_usd
        tried: Try | AtCap = Try(begin)
        while isinstance(tried, Try):
            start = tried.begin
            if windows:
                hold = reservation_for(windows, usd, least_usd, leaves_room=not tried.is_last)
                start = replace(start, money=hold)
            step = turn.retry(partial(self.turns.begin_step, turn.claim, start, mark, under_way))
            match step:
                case StepAttempt():
                    return BegunStep(step, _without_tools(asking) if tried.is_last else asking)
                case StepOverBudget():
                    return LoopEnd(BUDGET_ENDS[step.what], lost=())
                case "LOST":
                    return LOST
                case MoneyRefusal():
                    tried = next_try(tried, self.budgets.grant(windows, step))
        return self._refused(turn, tried)

    def _refused(self, turn: OwnedTurn, at_cap: AtCap) -> StepOutcome:
        claim = turn.claim
        match at_cap.what:
            case "wait":
                wait_s = WAIT_S * (1 + random.random())
                wait = partial(self.turns.wait_for_permit, claim, wait_s, wait_s, at_cap.name, None, ())
                return Waits(at_cap.name) if turn.retry(wait) == "WAITS" else LOST
            case "park":
                queue, until_ms = self.budgets.queue_key(at_cap), self.budgets.remaining_ms(at_cap)
                park = partial(self.turns.park_for_budget, claim, queue, at_cap.name, until_ms, ())
                parked = turn.retry(park) == "PARKED"
                log.warning("turn parked, a budget is spent", turn_id=claim.turn_id, budget=at_cap.window.name)
                return did_or_lost(parked, f"parked for {at_cap.name}")
            case "refuse" | "finish":
                return LoopEnd(_spent_end(at_cap), lost=())


def begin_beside(
    turn: OwnedTurn,
    budgets: BudgetDesk,
    brain: Brain,
    usd: float | None,
    begin: Callable[[MoneyHold | None], MoneyRefusal | AuxiliaryWord],
) -> AuxiliaryWord:
    """Begin an auxiliary model call, such as a reflection, under budgets. Returns the word of `begin`, or `SPENT` if a
    budget refuses the call."""
    windows = budgets.windows(turn.claim.session_id, turn.view.request.brain or brain.name)
    hold = reservation_for(windows, usd, usd)
    while isinstance(word := turn.retry(partial(begin, hold)), MoneyRefusal):
        if budgets.grant(windows, word) is not None:
            return "SPENT"
    return word


def _without_tools(asking: StepRequest) -> StepRequest:
    """Return the request with all tools forbidden. The tools stay listed, because some services refuse a history with
    calls of unlisted tools."""
    options = asking.setting.options.model_copy(update={"tool_choice": NO_TOOLS})
    return replace(asking, setting=replace(asking.setting, options=options))


def _spent_end(at_cap: AtCap) -> End:
    text = f"The {at_cap.name} is spent, so I could not go on. {LIMIT_HINT}"
    return End(Ending.COMPLETED, StopReason.MAX_COST, f"{at_cap.name} is spent", standard_text=text)
