"""Beside the steps: the opening wave, reflections and compactions. Each ends the advance it is made in, and rings."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.brain import Brain
from brainq.contracts.claim import TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.providers.aside import Aside
from brainq.providers.resolve import resolve_model
from brainq.turn.begin import EARLIER
from brainq.turn.compaction import ContextCompactor, should_compact
from brainq.turn.opening import opening_calls
from brainq.turn.ports import Archive, Asides, Price
from brainq.turn.preparer import TurnPreparation
from brainq.turn.reflection import ReflectionEngine, note_of
from brainq.turn.tracker import ContextTracker

log = logger("brainq.turn")

Word = str
"""What was done: "" for nothing (go on with the step), `lost`, or a few words for logs. After words the turn has been
rung, or awaits its calls, and is no longer ours."""


class Beside:
    """Does what comes before a step, when it is due."""

    def __init__(self, brain: Brain, asides: Asides, archive: Archive, price: Price) -> None:
        self._brain = brain
        self._asides = asides
        self._archive = archive
        self._price = price

    def open(self, claim: TurnClaim, view: TurnView) -> Word:
        """Dispatch memory and the context pack, before the first step, where the brain has either."""
        if view.opened or view.step > 0:
            return ""
        calls = opening_calls(self._brain, view.request)
        if not calls:
            return ""
        word = self._asides.open(claim, calls, self._brain.context.opening_s)
        return {"OPENED": "opened", "LOST": "lost"}.get(word, "")

    def reflect(self, claim: TurnClaim, view: TurnView) -> Word:
        """Reflect on the step that was just made, at most once."""
        lost: list[bool] = []

        def claimed() -> bool:
            word = self._asides.begin(claim, "reflection", str(view.step))
            if word == "LOST":
                lost.append(True)
            return word == "GO"

        engine = ReflectionEngine(lambda: self._aside(view), claimed, self._price)
        made = engine.reflect(
            view.own,
            view.step,
            timeout_s=view.remaining_ms / 1000,
            session_id=claim.session_id,
            turn_id=claim.turn_id,
        )
        if lost:
            return "lost"
        if made.result.stub in ("budget", "deadline"):
            return ""
        note = note_of(made.result, claim.turn_id)
        data = {"step": view.step, "stub": made.result.stub}
        if not self._asides.commit_note(claim, "reflection", note, made.spend, data):
            return "lost"
        return "reflected"

    def compact(
        self,
        claim: TurnClaim,
        view: TurnView,
        prepared: TurnPreparation,
        tracker: ContextTracker,
    ) -> Word:
        """Replace the older messages by a summary, when the context is nearly full."""
        most = tracker.max_context_tokens
        tokens = tracker.tokens(prepared.full_estimate)
        auto = self._brain.context.auto_compact
        if not should_compact(tokens, most, auto, view.compaction_tried_at, view.history_length):
            return ""
        word = self._asides.begin(claim, "compaction", str(tokens))
        if word != "GO":
            return "lost" if word == "LOST" else ""
        compactor = ContextCompactor(lambda: self._aside(view), self._price, self._is_write)
        made = compactor.compact(
            view.history,
            turn_id=claim.turn_id,
            tracker=tracker,
            fixed_estimate=prepared.fixed_estimate,
            timeout_s=view.remaining_ms / 1000,
            session_id=claim.session_id,
            step=view.step,
        )
        if made is None:
            return ""
        self._keep(claim, made.archive)
        word = self._asides.compact(
            claim,
            expect=view.history_length,
            # A very long history is read in part: what is older than that goes, too.
            drop=view.history_length - len(view.history) + made.drop,
            front=made.items,
            spend=made.spend,
            data={
                "dropped": made.drop,
                "method": made.method,
                "tokens_before": made.tokens_before,
                "tokens_after": made.tokens_after,
            },
            mark=str(made.tokens_after),
        )
        log.info(
            "context compacted", turn_id=claim.turn_id, step=view.step, method=made.method, did=word.lower()
        )
        return {"COMPACTED": "compacted", "LOST": "lost"}.get(word, "")

    def _keep(self, claim: TurnClaim, messages: Sequence[Message]) -> None:
        """Into SQL, before Redis lets go of them."""
        turns: dict[str, list[Message]] = {}
        for message in messages:
            turns.setdefault(message.turn, []).append(message)
        for turn_id, own in turns.items():
            if turn_id and not turn_id.startswith(EARLIER):
                self._archive.archive(claim.session_id, turn_id, own, self._brain.redact_logs)

    def _is_write(self, name: str) -> bool:
        tool = self._brain.tools.get(name)
        return tool is None or not tool.spec.effect.is_read

    def _aside(self, view: TurnView) -> Aside:
        if self._brain.aside_model is not None:
            return Aside(*resolve_model(self._brain.aside_model))
        return Aside(*resolve_model(view.request.model or self._brain.model, view.request.provider))
