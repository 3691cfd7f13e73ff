"""The work before a step: the opening wave, reflections and compactions. Each of them ends the advance. The turn then
continues with a new doorbell, or when its calls have ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from brainq.contracts.message import Message
from brainq.contracts.model import Price, Spend, TokenUsage
from brainq.contracts.view import TurnView
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.canonical import fingerprint
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.auxiliary import MAX_ANSWER_TOKENS, AuxiliaryModel
from brainq.engine.models.costs import first_model, worst_cost_usd
from brainq.engine.models.providers import resolve_model
from brainq.engine.turn.opening_wave import OpeningWave
from brainq.engine.turn.owned_turn import LOST, Did, Outcome, OwnedTurn, did_or_lost
from brainq.engine.turn.prompt.compaction import MAX_SUMMARY_TOKENS, ContextCompactor, ContextTracker, should_compact
from brainq.engine.turn.reflection import ReflectionEngine, note_of
from brainq.engine.turn.step_money import begin_beside
from brainq.engine.turn.step_request import PreparedStep, turn_allowance
from brainq.errors import BrainqError
from brainq.runtime.observe.logs import logger
from brainq.runtime.text.estimate import estimate_messages

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.engine.people.budgets import BudgetDesk

log = logger("brainq.turn")
MAX_REFLECTION_TOKENS = 4_000  # of the transcript that a reflection reads, which is cut to 16,000 characters
MIN_COMPACTION_TOKENS = 2_000  # a shorter conversation is not compacted, even on request
REFLECTION_FRAME_TOKENS = 400  # for the instructions and the answer
_OUTCOMES: dict[str, Outcome] = {"OPENED": Did("opened"), "COMPACTED": Did("compacted"), "LOST": LOST}
ArchiveMessages = Callable[[str, str, Sequence[Message], bool], None]
"""Stores messages before a compaction drops them. The arguments are the session, the turn, the messages, and
`redact`."""


@dataclass(eq=False)
class AuxiliaryWork:
    """The work before a step. Each method returns the outcome of the advance, or None if the step can follow now."""

    brain: Brain
    turns: RedisTurns
    archive: ArchiveMessages
    price: Price
    budgets: BudgetDesk

    def dispatch_opening(self, turn: OwnedTurn, opening: OpeningWave) -> Outcome | None:
        """Dispatch the calls of the opening wave, for which the turn then waits."""
        word = turn.retry(lambda: self.turns.open_wave(turn.claim, opening.calls, opening.limit_s))
        return _OUTCOMES.get(word)

    def reflect(self, turn: OwnedTurn) -> Outcome | None:
        """Reflect on the latest step, unless a reflection on it was already tried."""
        claim, view = turn.claim, turn.view
        words: list[str] = []

        def begin() -> bool:
            tokens = min(MAX_REFLECTION_TOKENS, estimate_messages(view.own_messages)) + REFLECTION_FRAME_TOKENS
            usd, under_way = self._worst_cost(view, tokens, MAX_ANSWER_TOKENS)
            attempt = partial(self.turns.begin_auxiliary, claim, "reflection", str(view.step), tokens, usd, under_way)
            words.append(begin_beside(turn, self.budgets, self.brain, usd, attempt))
            return words[-1] == "GO"

        made = ReflectionEngine(lambda: self._model(view), begin, self._allowance(view)).reflect(
            view.own_messages,
            view.step,
            timeout_s=view.remaining_ms / 1000,
            session_id=claim.session_id,
            turn_id=claim.turn_id,
        )
        if "LOST" in words:
            return LOST
        if made.result.stub in ("budget", "deadline"):
            return None
        note = note_of(made.result, claim.turn_id)
        data = {"step": view.step, "stub": made.result.stub}
        kept = turn.retry(lambda: self.turns.commit_note(claim, "reflection", note, made.spend, data))
        return did_or_lost(kept, "reflected")

    def is_full(self, view: TurnView, step: PreparedStep) -> bool:
        """Return whether the context is so full that a summary should replace older messages before this step."""
        tokens = step.tracker.tokens(step.preparation.full_estimate)
        most, auto = step.tracker.max_context_tokens, self.brain.context.auto_compact
        return should_compact(tokens, most, auto, view.compaction_tried_at, view.history.length)

    def compact(self, turn: OwnedTurn, step: PreparedStep) -> Outcome | None:
        """Replace older messages by a summary, so that the next requests fit the context."""
        tracker, prepared = step.tracker, step.preparation
        tokens = tracker.tokens(prepared.full_estimate)
        return self._compact(turn, tracker, tokens, prepared.fixed_estimate)

    def compact_now(self, turn: OwnedTurn) -> Outcome | None:
        """Replace older messages by a summary, however full the context is, because a person requested it."""
        view = turn.view
        limits = view.request.limits.applied_to(self.brain.limits)
        size = view.history.tokens
        # With its present size as the limit, the history is halved. A short history is left as it is.
        most = min(limits.max_context_tokens, max(MIN_COMPACTION_TOKENS, size))
        tracker = ContextTracker.from_state(most, view.known)
        return self._compact(turn, tracker, tracker.tokens(size), 0) if size else None

    def _compact(self, turn: OwnedTurn, tracker: ContextTracker, tokens: int, fixed_estimate: int) -> Outcome | None:
        claim, view = turn.claim, turn.view
        usd, under_way = self._worst_cost(view, tokens, 2 * MAX_SUMMARY_TOKENS)
        begin = partial(self.turns.begin_auxiliary, claim, "compaction", str(tokens), tokens, usd, under_way)
        word = begin_beside(turn, self.budgets, self.brain, usd, begin)
        if word != "GO":
            return LOST if word == "LOST" else None
        made = ContextCompactor(lambda: self._model(view), self._allowance(view), self._is_write).compact(
            view.history.messages,
            turn_id=claim.turn_id,
            tracker=tracker,
            fixed_estimate=fixed_estimate,
            timeout_s=view.remaining_ms / 1000,
            session_id=claim.session_id,
            step=view.step,
        )
        if made is None:
            return None
        try:
            self.archive(claim.session_id, claim.turn_id, made.archive, self.brain.redact_logs)
        except Exception as failure:
            # Nothing may leave Redis that SQL does not have. Until then, requests leave out older messages.
            log.error("context not compacted, SQL does not keep it", failure=failure, turn_id=claim.turn_id)
            note = {"method": "none", "dropped": 0, "tokens_before": tokens, "tokens_after": tokens}
            spend = made.spend
            kept = turn.retry(lambda: self.turns.commit_note(claim, "compaction", None, spend, note))
            return did_or_lost(kept, "compaction put off")
        commit = partial(
            self.turns.compact,
            claim,
            expect=view.history.length,
            # Only the newest part of a very long history was read. The part before it is dropped as well.
            drop=view.history.older + made.drop,
            front=made.items,
            spend=made.spend,
            data={
                "dropped": made.drop,
                "method": made.method,
                "tokens_before": made.tokens_before,
                "tokens_after": made.tokens_after,
            },
            mark=str(made.tokens_after),
            forget=self._reads_of(made.archive),
            why=made.why,
        )
        word = turn.retry(commit)
        log.info("context compacted", turn_id=claim.turn_id, step=view.step, method=made.method, did=word.lower())
        return _OUTCOMES.get(word)

    def _reads_of(self, messages: Sequence[Message]) -> list[str]:
        """Return the fingerprints of the reads whose results are among these messages."""
        calls = [call for message in messages for call in message.calls if not self._is_write(call.name)]
        return [fingerprint(c.name, c.arguments) for c in calls if isinstance(c.arguments, dict)]

    def _worst_cost(self, view: TurnView, tokens: int, output: int) -> tuple[float | None, tuple[Spend, ...]]:
        """Return the worst-case cost of an auxiliary model call and what is charged if the worker dies during it. The
        cost is None if the model's price is unknown."""
        try:
            auxiliary = self._model(view)
        except BrainqError:
            return None, ()
        usage = TokenUsage(input_tokens=tokens, output_tokens=output, estimated=True)
        provider, model = first_model(auxiliary.provider, auxiliary.model)
        lost = Spend.from_usage("lost", view.step, model, usage, self.price(provider, model, usage))
        most = worst_cost_usd(auxiliary.provider, auxiliary.model, usage, self.price)
        return most, (lost,)

    def _allowance(self, view: TurnView) -> Allowance:
        return turn_allowance(view, view.request.limits.applied_to(self.brain.limits), self.price)

    def _is_write(self, name: str) -> bool:
        tool = self.brain.tools.get(name)
        return tool is None or not tool.spec.effect.is_read

    def _model(self, view: TurnView) -> AuxiliaryModel:
        if self.brain.auxiliary_model is not None:
            return AuxiliaryModel(*resolve_model(self.brain.auxiliary_model))
        return AuxiliaryModel(*resolve_model(view.request.model or self.brain.model, view.request.provider))
