"""One step: begin the turn if need be, prepare, and have the model asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from brainq.brain import Brain
from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.claim import TurnClaim
from brainq.contracts.conversation import EMPTY
from brainq.contracts.tool import ToolSpec
from brainq.contracts.usage import Price, TokenUsage
from brainq.contracts.view import TurnView
from brainq.errors import BrainqError
from brainq.ports.approval_rows import ApprovalRows
from brainq.ports.brakes import Brakes
from brainq.ports.budgets import Budgets
from brainq.ports.turns import Turns
from brainq.providers.resolve import resolve_model
from brainq.text.estimate import estimate_tools, with_sizes
from brainq.tools.opening import opened_memory, opened_pack
from brainq.turn.attempts import Attempts, not_asked
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.begin import Beginner
from brainq.turn.context.mailbox import TurnMailbox, messages_of, readiness_word
from brainq.turn.context.preparer import TurnPreparer
from brainq.turn.context.selection import SemanticToolSelector, context_of
from brainq.turn.context.tracker import ContextTracker
from brainq.turn.outcome import RungAgain, StepOutcome, StepRequest
from brainq.turn.patience import Trying
from brainq.turn.replies import Replies
from brainq.turn.thinking import PREFIXES


class Thinker:
    """Takes one step of a turn. None means that the turn was lost to another owner."""

    def __init__(
        self,
        *,
        brain: Brain,
        turns: Turns,
        budgets: Budgets,
        beginner: Beginner,
        auxiliary: AuxiliaryWork,
        approvals: ApprovalRows,
        brakes: Brakes,
        price: Price,
        selector: SemanticToolSelector | None,
        preparer: TurnPreparer | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._brain = brain
        self._beginner = beginner
        self._auxiliary = auxiliary
        self._brakes = brakes
        self._selector = selector
        self._preparer = preparer or TurnPreparer()
        replies = Replies(brain=brain, turns=turns, budgets=budgets, approvals=approvals)
        self._attempts = Attempts(brain=brain, turns=turns, replies=replies, price=price, pause=pause)
        self._tool_tokens: dict[str, int] = {}

    def think(
        self, claim: TurnClaim, view: TurnView, lost: Callable[[], bool], trying: Trying
    ) -> StepOutcome:
        request = view.request
        earlier = 0 if view.begun else trying(lambda: self._beginner.earlier(claim, view))
        info = TurnInfo.of(request, max(view.turn_number, earlier + 1))
        try:
            provider, model = resolve_model(request.model or self._brain.model, request.provider)
            system_prompt = request.system_prompt or self._beginner.system_prompt(info)
        except BrainqError as failure:
            return not_asked(str(failure))
        if not view.begun:
            begun = self._beginner.begin(claim, view, info, system_prompt, earlier, trying)
            if begun is None:
                return None
            # A review's history is its own, and begins here.
            before = EMPTY if request.kind == "review" else view.history
            view = replace(view, history=with_sizes(begun, before))
        if not view.opened:
            opened = self._auxiliary.open(claim, view, trying)
            if opened:
                return RungAgain(opened) if opened != "lost" else None
        drain = TurnMailbox(view.inputs).drain()
        if drain.readiness is not None and view.flag:
            trying(lambda: self._brakes.lift(claim.session_id, claim.turn_id))
        inputs = messages_of(drain, claim.turn_id, view.step + 1)
        limits = request.limits.over(self._brain.limits)
        specs = self._tools(view)
        tools_estimate = self._tools_estimate(specs)
        tracker = ContextTracker.of(limits.max_context_tokens, view.known)
        memory, pack_json = opened_memory(view.opening), opened_pack(view.opening)
        prepared = self._preparer.prepare(
            request,
            with_sizes(inputs, view.history),
            system_prompt=system_prompt,
            provider=provider.name,
            model=model,
            today=datetime.now(UTC),
            max_context_tokens=limits.max_context_tokens,
            memory_text=memory.text,
            pack_json=pack_json,
            thinking_prefix=PREFIXES[self._brain.thinking],
            tools_estimate=tools_estimate,
            ratio=tracker.ratio,
        )
        compacted = self._auxiliary.compact(claim, view, prepared, tracker, trying)
        if compacted:
            return RungAgain(compacted) if compacted != "lost" else None
        estimate = prepared.estimate + tools_estimate
        # Where the length of the reply is bounded its worst case is reserved, too.
        worst = TokenUsage(input_tokens=tracker.tokens(estimate), output_tokens=limits.max_output_tokens or 0)
        asking = StepRequest(
            provider,
            model,
            prepared.messages,
            specs,
            limits,
            estimate,
            worst,
            info.turn_number,
            len(view.inputs),
            inputs,
            readiness_word(drain),
            tracker.warns(estimate),
        )
        return self._attempts.make(claim, view, asking, lost, trying)

    def _tools_estimate(self, specs: Sequence[ToolSpec]) -> int:
        """`estimate_tools`, each tool of the brain looked at once: their schemas do not change."""
        known = self._tool_tokens
        for spec in specs:
            if spec.name not in known:
                known[spec.name] = estimate_tools((spec,))
        return sum(known[spec.name] for spec in specs)

    def _tools(self, view: TurnView) -> tuple[ToolSpec, ...]:
        """The tools this turn's model sees: chosen before the first step, and the same ones at each later one."""
        specs = tuple(self._brain.tools.specs.values())
        if self._selector is None or len(specs) <= self._selector.max_tools:
            return specs
        if view.shown:
            return tuple(spec for spec in specs if spec.name in view.shown)
        context = context_of(view.history, view.request.turn_id)
        return self._selector.select(view.request.user_message, specs, context=context)
