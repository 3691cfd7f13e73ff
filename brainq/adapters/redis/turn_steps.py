"""The steps of a turn in Redis: its begin, each model call, what a reply asks for, what is done beside them; and the
budget that they use.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from brainq.adapters.redis.connection import as_mapping
from brainq.adapters.redis.money import read_money_refusal
from brainq.adapters.redis.opened import OpenedCall, OpenedTurn, OpenedWork, StayRequest, opened_call, unless_claimed
from brainq.adapters.redis.script_methods import Parameter, script, script_call
from brainq.adapters.redis.scripts import ScriptCall, Scripts
from brainq.contracts.budgets import MoneyHold, MoneyRefusal
from brainq.contracts.claim import (
    CallClaim,
    CallsOverBudget,
    PlannedCall,
    StayOffer,
    StepAttempt,
    StepOverBudget,
    StepStart,
    TurnClaim,
    TurnStart,
)
from brainq.contracts.event import EventKind
from brainq.contracts.message import Message
from brainq.contracts.model import ModelRetry, Spend, TokenUsage
from brainq.contracts.turn import Limits
from brainq.contracts.view import BudgetSnapshot
from brainq.errors import TurnNotFound

STANDALONE_KEEP_MS = 86_400_000  # lifetime of a budget that belongs to no turn


class TurnBudgets:
    """The budgets of turns, by session id and turn id. Each claim is atomic, and all deadlines use Redis' clock."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._keys = scripts.keys

    @script("budget_create", CREATED=True, EXISTS=False)
    def _create_budget(self, session_id: str, turn_id: str, limits: Limits, keep_ms: int) -> bool: ...

    def create_budget(self, session_id: str, turn_id: str, limits: Limits) -> bool:
        """Create a budget that belongs to no queued turn. Returns False if it exists."""
        return self._create_budget(session_id, turn_id, limits, int(limits.timeout_s * 1000) + STANDALONE_KEEP_MS)

    @script("budget_claim", DONE=list, EXPIRED=None)
    def _claim_budget(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str] | None: ...

    def claim_budget(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]:
        """Claim a place of the budget for each id. Returns a word for each, in order: `CLAIMED`, `ALREADY` or `SPENT`,
        or `EXPIRED` for all ids if the deadline has passed."""
        return self._claim_budget(session_id, turn_id, kind, ids) or ["EXPIRED"] * len(ids)

    @script("budget_spend", id=Parameter("spend_id"), cost=Parameter("cost_usd"), ADDED=True, ALREADY=False, GONE=False)
    def spend_budget(
        self, session_id: str, turn_id: str, usage: TokenUsage, cost_usd: float | None, spend_id: str
    ) -> bool:
        """Add tokens and money. Returns False if `spend_id` was added before, or if the budget is gone."""
        ...

    def budget(self, session_id: str, turn_id: str) -> BudgetSnapshot:
        """Return what is left of a budget. Raises TurnNotFound if there is no such budget."""
        return read_budget(self._scripts, session_id, turn_id)


def read_budget(scripts: Scripts, session_id: str, turn_id: str) -> BudgetSnapshot:
    """Return what is left of a turn's budget. Raises TurnNotFound if there is no budget."""
    turn_key = scripts.keys.turn(session_id, turn_id)
    reads = [("TIME",), ("HGETALL", f"{turn_key}:budget"), ("HMGET", turn_key, "state", "parked_at")]
    (seconds, micros), found, parked = scripts.read(reads)
    row = as_mapping(found)
    if not row:
        raise TurnNotFound(f"turn {turn_id!r} of session {session_id!r} has no budget in Redis; it may have expired")
    return budget_snapshot(row, budget_now_ms(int(seconds) * 1000 + int(micros) // 1000, *parked))


def budget_now_ms(now_ms: int, state: str | None, parked_at: str | None) -> int:
    """Return the time to compare with a turn's deadline.

    For a parked turn it is when the park began, because its deadline is paused.
    """
    return int(parked_at) if state == "parked" and parked_at else now_ms


def budget_snapshot(row: dict[str, Any], now_ms: int) -> BudgetSnapshot:
    """Return the documented snapshot of a budget hash. A turn that still waits has its whole time left."""
    deadline = int(row.get("deadline") or now_ms + int(row["timeout_ms"]))
    remaining_ms = max(0, deadline - now_ms)
    return BudgetSnapshot(
        remaining_s=remaining_ms / 1000,
        expired=remaining_ms == 0,
        steps_used=int(row.get("steps_used") or 0),
        steps_max=int(row["steps_max"]),
        tool_calls_used=int(row.get("tool_calls_used") or 0),
        tool_calls_max=int(row["tool_calls_max"]),
        reflections_used=int(row.get("reflections_used") or 0),
        reflections_max=int(row["reflections_max"]),
        max_context_tokens=int(row["max_context_tokens"]),
        tokens_used=int(row.get("input_tokens") or 0) + int(row.get("output_tokens") or 0),
        tokens_max=int(row["tokens_max"]) if row.get("tokens_max") else None,
        cost_usd=float(row.get("cost_usd") or 0),
        cost_max_usd=float(row["cost_max_usd"]) if row.get("cost_max_usd") else None,
        cost_known=row.get("cost_usd") is not None,
    )


class TurnSteps(TurnBudgets):
    """What the owner of a turn does from its begin to its end, each one fenced script."""

    def __init__(self, scripts: Scripts, opened: OpenedWork) -> None:
        super().__init__(scripts)
        self.opened = opened
        # Together with the fence, which belongs to one claim, a number distinguishes a request from its repetition.
        self._numbers = itertools.count(1)

    def mark(self, claim: TurnClaim) -> str:
        """Return a word that no other request of this turn's owners has."""
        return f"{claim.fence}:{next(self._numbers)}"

    @script_call("turn_begin")
    def _turn_begin(self, claim: TurnClaim, start: TurnStart) -> ScriptCall[Literal["BEGUN", "ALREADY", "LOST"]]: ...

    @script_call("step_begin", asked=Parameter("mark"), GO=StepAttempt, SPENT=StepOverBudget, MONEY=read_money_refusal)
    def _step_begin(
        self, claim: TurnClaim, step: StepStart, mark: str, under_way: Sequence[Spend]
    ) -> ScriptCall[StepAttempt | StepOverBudget | MoneyRefusal | Literal["LOST"]]: ...

    def begin(self, claim: TurnClaim, start: TurnStart) -> bool:
        """Put the user's message into the session's history, once. Returns False if the turn was lost."""
        return self._turn_begin(claim, start).run() != "LOST"

    def begin_step(
        self, claim: TurnClaim, step: StepStart, mark: str, under_way: Sequence[Spend] = ()
    ) -> StepAttempt | StepOverBudget | MoneyRefusal | Literal["LOST"]:
        """Begin a step, or another attempt at it. Begins the turn first, if it has not begun.

        mark        from `mark`: the same mark begins the step once
        under_way   what the attempt is charged as if its worker dies before it reports more
        """
        begin = self._step_begin(claim, step, mark, under_way)
        return begin.run() if step.turn is None else begin.after(self._turn_begin(claim, step.turn))

    def publish_delta(
        self,
        claim: TurnClaim,
        step: int,
        attempt: int,
        text: str,
        mark: str = "",
        kind: EventKind = EventKind.TEXT_DELTA,
    ) -> bool:
        """Publish a part of the reply or of the reasoning, once for each `mark`. Returns False if the turn was lost."""
        return self._publish_delta(claim, step, attempt, mark or self.mark(claim), kind, text)

    @script("step_delta", OK=True, LOST=False)
    def _publish_delta(
        self, claim: TurnClaim, step: int, attempt: int, part: str, kind: EventKind, text: str
    ) -> bool: ...

    def publish_retry(self, claim: TurnClaim, step: int, attempt: int, retry: ModelRetry) -> bool:
        return self._publish_retry(claim, step, attempt, self.mark(claim), retry)

    @script("step_retry", OK=True, LOST=False)
    def _publish_retry(self, claim: TurnClaim, step: int, attempt: int, part: str, retry: ModelRetry) -> bool: ...

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
        offer: StayOffer | None = None,
    ) -> CallsOverBudget | CallClaim | TurnClaim | Literal["COMMITTED", "LOST"]:
        """Pay for the calls of a reply, commit the reply, and open its first wave.

        If the budget does not allow all calls, nothing is committed and the calls to be refused are returned.

        problem   what is wrong with the reply, in one word for events; "" for nothing
        notes     messages to the model that follow a reply without calls
        lost      requests for the reply that broke off before
        offer     the thread continues with what this opens: returns the claim of that
        """
        stay = self.opened.after_calls(offer, claim.session_id, claim.turn_id)
        done = self._commit(claim, step, message, plan, spend, tail, block_tools, problem, notes, lost, stay)
        if isinstance(done, OpenedCall | OpenedTurn):
            return self.opened.claim(stay, claim.session_id, claim.turn_id, done)
        return done

    @script(
        "step_commit",
        item=Parameter("message"),
        calls=Parameter("plan"),
        block=Parameter("block_tools"),
        BUDGET=CallsOverBudget,
        COMMITTED=unless_claimed("COMMITTED"),
        CALL=opened_call,
        TURN=OpenedTurn,
    )
    def _commit(
        self,
        claim: TurnClaim,
        step: int,
        message: Message,
        plan: Sequence[PlannedCall],
        spend: Spend,
        tail: str,
        block_tools: Sequence[str],
        problem: str,
        notes: Sequence[Message],
        lost: Sequence[Spend],
        stay: StayRequest,
    ) -> CallsOverBudget | OpenedCall | OpenedTurn | Literal["COMMITTED", "LOST"]: ...

    # Work beside the steps: the opening wave, reflections, and the compaction of the history.

    @script("turn_open", calls=Parameter("plan"), opening_ms=Parameter("opening_s"))
    def open_wave(
        self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float
    ) -> Literal["OPENED", "ALREADY", "LOST"]:
        """Open the wave of step 0. The turn then awaits its calls."""
        ...

    @script("opening_skip")
    def skip_opening(self, session_id: str, turn_id: str) -> Literal["SKIPPED", "ALREADY", "EARLY"]:
        """Continue the turn without the calls of the opening wave that have not ended."""
        ...

    @script("aux_begin", MONEY=read_money_refusal, SPENT="SPENT")
    def begin_auxiliary(
        self,
        claim: TurnClaim,
        kind: Literal["reflection", "compaction"],
        mark: str,
        tokens: int,
        usd: float | None,
        under_way: Sequence[Spend] = (),
        money: MoneyHold | None = None,
    ) -> MoneyRefusal | Literal["GO", "DONE", "SPENT", "LOST"]:
        """Mark a reflection or a compaction as tried. Returns `DONE` if it was tried before.

        tokens, usd   its worst case, which is held against the budget
        under_way     what it is charged as if its worker dies
        money         the budgets it is held against. Returns a MoneyRefusal if one does not allow it now
        """
        ...

    @script("turn_park", parked_line=Parameter("line"), after_ms=Parameter("until_ms"))
    def park_for_budget(
        self, claim: TurnClaim, line: str, name: str, until_ms: int, lost: Sequence[Spend] | None
    ) -> Literal["PARKED", "LOST"]:
        """Give the turn up until the window of the budget ends, in `until_ms`, or until the budget is raised.

        line   the key of the line in which the turn waits
        """
        ...

    @script("aux_commit", item=Parameter("note"), COMMITTED=True, LOST=False)
    def commit_note(
        self, claim: TurnClaim, kind: str, note: Message | None, spend: Spend | None, data: Mapping[str, JsonValue]
    ) -> bool:
        """Put a note of the runtime into the history and ring for the step. Returns False if the turn was lost."""
        ...

    @script("history_compact", items=Parameter("front"))
    def compact(
        self,
        claim: TurnClaim,
        *,
        expect: int,
        drop: int,
        front: Sequence[Message],
        spend: Spend | None,
        data: Mapping[str, JsonValue],
        mark: str,
        forget: Sequence[str],
        why: str = "",
    ) -> Literal["COMPACTED", "CHANGED", "LOST"]:
        """Replace the `drop` oldest of `expect` messages by `front`.

        mark     how full the context is afterwards, in tokens
        forget   fingerprints of reads whose results leave the context: they may be repeated
        why      why no model wrote the summary; "" if a model did
        """
        ...
