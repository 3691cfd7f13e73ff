"""The steps of a turn in Redis: its begin, each model call, what a reply asks for, what is done beside them; and the
budget that they use.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import JsonValue

from brainq.contracts.budgets import MoneyHold, MoneyRefusal
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
from brainq.contracts.model import ModelRetry, Spend, TokenUsage
from brainq.contracts.turn import Limits
from brainq.contracts.view import BudgetSnapshot
from brainq.errors import TurnNotFound
from brainq.state.connection import as_mapping
from brainq.state.money import money_json, money_refusal
from brainq.state.script_values import (
    as_json,
    json_or_none,
    plan_json,
    readiness_argument,
    running_attempt_argument,
    spends_json,
    usage_arguments,
)
from brainq.state.scripts import ScriptCall
from brainq.state.typed_scripts import (
    AuxBeginMoney,
    AuxBeginSpent,
    Scripts,
    StepBeginGo,
    StepBeginMoney,
    StepBeginSpent,
    StepCommitBudget,
)

STANDALONE_KEEP_S = 86_400  # lifetime of a budget that belongs to no turn


class TurnBudgets:
    """Claims on any turn's budget, and what is left of it, by the turn's ids: atomic, and by one clock."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts
        self._keys = scripts.keys

    def create_budget(self, session_id: str, turn_id: str, limits: Limits) -> bool:
        """Make a budget that belongs to no queued turn; False when it exists."""
        reply = self._scripts.budget_create(
            session_id,
            turn_id,
            timeout_ms=int(limits.timeout_s * 1000),
            max_steps=limits.max_steps,
            max_tool_calls=limits.tool_calls,
            max_reflections=limits.max_reflections,
            max_context_tokens=limits.max_context_tokens,
            max_total_tokens=limits.max_total_tokens,
            max_cost_usd=limits.max_cost_usd,
            keep_ms=int(limits.timeout_s * 1000) + STANDALONE_KEEP_S * 1000,
        ).run()
        return reply == "CREATED"

    def claim_budget(self, session_id: str, turn_id: str, kind: str, ids: Sequence[str]) -> list[str]:
        """One word an id, in order: `CLAIMED`, `ALREADY` or `SPENT`; `EXPIRED` for all past the deadline."""
        reply = self._scripts.budget_claim(session_id, turn_id, kind=kind, ids=ids).run()
        return ["EXPIRED"] * len(ids) if reply == "EXPIRED" else list(reply.claims)

    def spend_budget(
        self, session_id: str, turn_id: str, usage: TokenUsage, cost_usd: float | None, spend_id: str
    ) -> bool:
        """Add tokens and money; a `spend_id` seen before, or a budget that is gone, adds nothing."""
        reply = self._scripts.budget_spend(
            session_id,
            turn_id,
            id=spend_id,
            input=usage.input_tokens,
            output=usage.output_tokens,
            cache_read=usage.cache_read_tokens,
            cache_creation=usage.cache_creation_tokens,
            cost=cost_usd,
        ).run()
        return reply == "ADDED"

    def budget(self, session_id: str, turn_id: str) -> BudgetSnapshot:
        """What is left. Raises TurnNotFound when there is no such budget."""
        return read_budget(self._scripts, session_id, turn_id)


def read_budget(scripts: Scripts, session_id: str, turn_id: str) -> BudgetSnapshot:
    """What is left of a turn's budget. Raises TurnNotFound when there is none."""
    turn_key = scripts.keys.turn(session_id, turn_id)
    reads = [("TIME",), ("HGETALL", f"{turn_key}:budget"), ("HMGET", turn_key, "state", "parked_at")]
    (seconds, micros), found, parked = scripts.read(reads)
    row = as_mapping(found)
    if not row:
        raise TurnNotFound(f"turn {turn_id!r} of session {session_id!r} has no budget in Redis; it may have expired")
    return budget_snapshot(row, budget_now_ms(int(seconds) * 1000 + int(micros) // 1000, *parked))


def budget_now_ms(now_ms: int, state: str | None, parked_at: str | None) -> int:
    """What a turn's deadline is compared with: while it is parked, when that began, for its deadline does not run."""
    return int(parked_at) if state == "parked" and parked_at else now_ms


def budget_snapshot(row: dict[str, Any], now_ms: int) -> BudgetSnapshot:
    """A budget hash as its documented snapshot. A turn that still waits has its whole time left."""
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

    def __init__(self, scripts: Scripts) -> None:
        super().__init__(scripts)
        # With the fence, which belongs to one claim, a number tells a request from its repetition.
        self._numbers = itertools.count(1)

    def mark(self, claim: TurnClaim) -> str:
        """A word that no other request of this turn's owners has."""
        return f"{claim.fence}:{next(self._numbers)}"

    def begin(self, claim: TurnClaim, start: TurnStart) -> bool:
        """Put the user's message into the session's history; False: the turn was lost. Beginning twice is beginning
        once."""
        return self._turn_begin(claim, start).run() != "LOST"

    def begin_step(
        self, claim: TurnClaim, step: StepStart, mark: str, under_way: Sequence[Spend] = ()
    ) -> StepAttempt | StepOverBudget | MoneyRefusal | Literal["LOST"]:
        """Begin a step, or an attempt at it, and the turn with it, if it has not begun.

        mark        from `mark`: begun twice with the same one, the step is begun once
        under_way   what the attempt comes to, should its worker die before it tells more
        """
        begin = self._scripts.step_begin(
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
            under_way=spends_json(under_way or None),
            drain=step.drained,
            ready=readiness_argument(step.readiness),
            full=step.full,
            money=money_json(self._keys, step.money),
            items=[as_json(message) for message in step.inputs],
        )
        reply = begin.run() if step.turn is None else begin.after(self._turn_begin(claim, step.turn))
        match reply:
            case StepBeginGo():
                return StepAttempt(reply.step, reply.attempt)
            case StepBeginSpent():
                return StepOverBudget(reply.what)
            case StepBeginMoney():
                return money_refusal(reply)
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
        reply = self._scripts.step_delta(
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
        ).run()
        return reply == "OK"

    def publish_retry(self, claim: TurnClaim, step: int, attempt: int, retry: ModelRetry) -> bool:
        reply = self._scripts.step_retry(
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
        ).run()
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
        reply = self._scripts.step_commit(
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
        ).run()
        return CallsOverBudget(reply.refused) if isinstance(reply, StepCommitBudget) else reply

    # Beside the steps: the wave a turn begins with, reflections, and the compaction of the history.

    def open_wave(
        self, claim: TurnClaim, plan: Sequence[PlannedCall], opening_s: float
    ) -> Literal["OPENED", "ALREADY", "LOST"]:
        """Open the wave of step 0: `OPENED`, `ALREADY` or `LOST`. Once open, the turn awaits its calls."""
        return self._scripts.turn_open(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            calls=plan_json(plan),
            opening_ms=int(opening_s * 1000),
        ).run()

    def skip_opening(self, session_id: str, turn_id: str) -> Literal["SKIPPED", "ALREADY", "EARLY"]:
        """Go on without what the opening wave has not brought: `SKIPPED`, `ALREADY` or `EARLY`."""
        return self._scripts.opening_skip(session_id, turn_id).run()

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
        """Mark a `reflection` or `compaction` as tried: `GO`, `DONE` (tried before), `SPENT` or `LOST`.

        tokens, usd   the most it is thought to cost: held against the budget
        under_way     what is charged if its worker is lost
        money         what it holds against its budgets. Returns a MoneyRefusal if one does not allow it now
        """
        reply = self._scripts.aux_begin(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            mark=mark,
            tokens=tokens,
            usd=usd,
            under_way=spends_json(under_way or None),
            money=money_json(self._keys, money),
        ).run()
        if isinstance(reply, AuxBeginMoney):
            return money_refusal(reply)
        return "SPENT" if isinstance(reply, AuxBeginSpent) else reply

    def park_for_budget(
        self, claim: TurnClaim, line: str, name: str, until_ms: int, lost: Sequence[Spend] | None
    ) -> Literal["PARKED", "LOST"]:
        """Let the turn go until the budget's window turns, in `until_ms`, or it is raised. `line`: where it waits."""
        return self._scripts.turn_park(
            claim.session_id,
            claim.turn_id,
            parked_line=line,
            owner=claim.owner,
            fence=claim.fence,
            after_ms=until_ms,
            name=name,
            lost=spends_json(lost),
        ).run()

    def commit_note(
        self, claim: TurnClaim, kind: str, note: Message | None, spend: Spend | None, data: Mapping[str, JsonValue]
    ) -> bool:
        """Put a note of the runtime into the history and ring for the step itself; False: the turn was lost."""
        reply = self._scripts.aux_commit(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            kind=kind,
            item=json_or_none(note),
            data=json.dumps(dict(data)),
            **usage_arguments(spend),
        ).run()
        return reply == "COMMITTED"

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
        """Replace the `drop` oldest of `expect` messages by `front`: `COMPACTED`, `CHANGED` or `LOST`.

        mark     how full the context is afterwards, tokens
        forget   fingerprints of reads whose results are gone from the context: they may be repeated
        why      no model wrote the summary; "" if one did
        """
        return self._scripts.history_compact(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            expect=expect,
            drop=drop,
            mark=mark,
            forget=forget,
            why=why,
            items=[as_json(message) for message in front],
            data=json.dumps(dict(data)),
            **usage_arguments(spend),
        ).run()

    def _turn_begin(self, claim: TurnClaim, start: TurnStart) -> ScriptCall[Literal["BEGUN", "ALREADY", "LOST"]]:
        return self._scripts.turn_begin(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            prompt_hash=start.prompt_hash,
            earlier=start.earlier,
            items=[as_json(message) for message in start.messages],
        )
