"""The steps of a turn in Redis: its begin, each model call, and what a reply asks for."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Literal

from brainq.contracts.claim import PlannedCall, StepBegun, StepSpent, TurnClaim
from brainq.contracts.hold import HoldSpec
from brainq.contracts.message import Message
from brainq.contracts.usage import Spend
from brainq.state.keys import Keys
from brainq.state.outbox import Outbox
from brainq.state.script_values import plan_json, ready_word
from brainq.state.script_values import used as _used
from brainq.state.typed_scripts import Scripts, StepBeginGo, StepBeginSpent


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

    def begin(
        self, claim: TurnClaim, messages: Sequence[Message], prompt_hash: str, earlier: int = 0
    ) -> bool:
        """Put the user's message (the last one given) into the session's history; False: the turn was lost."""
        reply = self._run.turn_begin(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            prompt_hash=prompt_hash,
            earlier=earlier,
            items=_json(messages),
        )
        return reply != "LOST"

    def begin_step(
        self,
        claim: TurnClaim,
        estimate_tokens: int,
        tokens: int,
        estimate_usd: float | None,
        shown: Sequence[str] = (),
        drain: int = 0,
        inputs: Sequence[Message] = (),
        readiness: HoldSpec | str = "",
        mark: str = "",
        full: int = 0,
    ) -> StepBegun | StepSpent | Literal["LOST"]:
        """Begin a step, or an attempt at it.

        estimate_tokens  input, as it is compared with the bill later
        tokens           the most the step is thought to take, its reply included where that is bounded
        shown            names of the tools chosen for this turn; the first choice stands
        drain            so many of the mailbox's oldest inputs are consumed by this step, with GO
        inputs           the messages they become in the history
        readiness        the newest word of theirs about it: `ready`, a hold, or "" for none
        mark             from `mark`: begun twice with the same one, the step is begun once
        full             how much of the context it fills, in per cent, where that is worth a warning; else 0
        """
        reply = self._run.step_begin(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            asked=mark or self.mark(claim),
            estimate=estimate_tokens,
            tokens=tokens,
            shown=shown,
            estimate_usd=estimate_usd,
            drain=drain,
            ready=ready_word(readiness),
            full=full,
            items=_json(inputs),
        )
        match reply:
            case StepBeginGo():
                return StepBegun(reply.step, reply.attempt)
            case StepBeginSpent():
                return StepSpent(reply.what)
            case "LOST":
                return "LOST"

    def tell_delta(self, claim: TurnClaim, step: int, attempt: int, text: str, mark: str = "") -> bool:
        """Tell readers a part of the reply; False when the turn was lost. With the same `mark` it is told once."""
        reply = self._run.step_delta(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            attempt=attempt,
            part=mark or self.mark(claim),
            text=text,
        )
        return reply == "OK"

    def tell_retry(self, claim: TurnClaim, step: int, attempt: int, kind: str, wait_s: float) -> bool:
        reply = self._run.step_retry(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            attempt=attempt,
            part=self.mark(claim),
            kind=kind,
            wait_ms=round(wait_s * 1000),
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
    ) -> bool:
        """Commit a reply that is not the last, and open its first wave. False when the turn was lost.

        problem   what is wrong with the reply, in a word for events; "" for nothing
        notes     follow a reply without calls, and tell the model
        """
        reply = self._run.step_commit(
            claim.session_id,
            claim.turn_id,
            owner=claim.owner,
            fence=claim.fence,
            step=step,
            item=message.model_dump_json(exclude_defaults=True),
            calls=plan_json(plan),
            block=block_tools,
            tail=tail,
            problem=problem,
            notes=_json(notes),
            **_used(spend),
        )
        self._outbox.flush(claim.session_id)
        return reply == "COMMITTED"


def _json(messages: Sequence[Message]) -> list[str]:
    return [message.model_dump_json(exclude_defaults=True) for message in messages]
