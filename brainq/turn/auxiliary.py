"""What comes before a step: the opening wave, reflections and compactions. Each ends the advance it is made
in, and rings.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from brainq.brain.brain import Brain
from brainq.contracts.claim import PlannedCall, TurnClaim
from brainq.contracts.ids import call_id
from brainq.contracts.message import Message
from brainq.contracts.model import LostRequest, Price, Spend, TokenUsage
from brainq.contracts.status import Effect
from brainq.contracts.turn import TurnRequest
from brainq.contracts.view import TurnView
from brainq.errors import BrainqError
from brainq.gates.canonical import fingerprint
from brainq.models.asking.bill import Allowance
from brainq.models.auxiliary import AuxiliaryModel
from brainq.models.costs import first_model, lost_spends, worst_cost_usd
from brainq.models.resolve import resolve_model
from brainq.observe.logs import logger
from brainq.ports.redis_turns import Auxiliary
from brainq.text.estimate import estimate_messages
from brainq.tools.context_pack import MEMORY_TOOL
from brainq.tools.tool import Tool
from brainq.turn.attempts import turn_allowance
from brainq.turn.outage import OutageRetry
from brainq.turn.plan.approval import approval_for
from brainq.turn.prompt.compaction import ContextCompactor, ContextTracker, should_compact
from brainq.turn.reflection import ReflectionEngine, note_of
from brainq.turn.step_request import PreparedStep

# What a turn begins with, before its first step: memory and the context pack, as one wave of reads.

log = logger("brainq.turn")


SHARE_OF_TIME = 0.3  # of what the turn has: memory that is late must leave a short turn time to answer


def opening_limit_s(brain: Brain, remaining_ms: int) -> float:
    """How long this turn waits for its opening wave."""
    return min(brain.context.opening_s, max(0.0, remaining_ms / 1000) * SHARE_OF_TIME)


def opening_calls(brain: Brain, request: TurnRequest, limit_s: float) -> tuple[PlannedCall, ...]:
    """The calls of step 0, none of them paid for; empty where the brain has neither memory nor a pack tool."""
    calls: list[PlannedCall] = []
    if brain.memory is not None and brain.memory.retriever is not None:
        calls.append(_opening_call(0, MEMORY_TOOL, {"query": request.user_message}, limit_s, request))
    pack = _pack_tool(brain)
    if pack is not None:
        parameter = query_parameter(pack.spec.parameters)
        if approval_for(brain, pack, {parameter: request.user_message} if parameter else {}) is not None:
            log.warning("the pack tool needs an approval and is not called", tool=pack.spec.name)
        elif parameter:
            cap_s = min(pack.spec.timeout_s, limit_s)
            calls.append(_opening_call(len(calls), pack.spec.name, {parameter: request.user_message}, cap_s, request))
        else:
            log.warning("the pack tool needs more than one text and is not called", tool=pack.spec.name)
    return tuple(calls)


def query_parameter(parameters: Mapping[str, Any]) -> str:
    """The one text parameter that the user's message is given to; "" when the tool needs something else, too."""
    properties: Mapping[str, Any] = parameters.get("properties", {})
    required = [str(name) for name in parameters.get("required", ())]
    if len(required) > 1:
        return ""
    names = required or [name for name in ("query", "topic", "text") if name in properties]
    if not names or properties.get(names[0], {}).get("type") != "string":
        return ""
    return names[0]


def _pack_tool(brain: Brain) -> Tool | None:
    name = brain.context.pack_tool
    tool = brain.tools.get(name) if name else None
    return tool if tool is not None and tool.spec.effect is Effect.READ_ONLY else None


def _opening_call(place: int, tool: str, arguments: dict[str, str], cap_s: float, request: TurnRequest) -> PlannedCall:
    spec: dict[str, object] = {"arguments": arguments, "hash": "", "lanes": ()}
    if request.cwd is not None:
        spec["cwd"] = request.cwd
    if request.metadata is not None:
        spec["metadata"] = request.metadata
    if request.traceparent is not None:
        spec["traceparent"] = request.traceparent
    return PlannedCall(
        id=call_id(0, place),
        tool=tool,
        effect=Effect.READ_ONLY,
        wave=1,
        arguments_json=json.dumps(spec, separators=(",", ":")),
        args_hash="",
        fingerprint="",
        cap_ms=int(cap_s * 1000),
    )


# Model calls beside the steps, and the opening wave. Each ends the advance it is made in, and rings.

MAX_REFLECTION_TOKENS = 4_000  # of the transcript a reflection reads; it is cut to 16,000 characters

MIN_COMPACTION_TOKENS = 2_000  # a conversation that is not compacted, also when somebody asks for it

REFLECTION_FRAME_TOKENS = 400  # its instructions and its answer

ArchiveMessages = Callable[[str, str, Sequence[Message], bool], None]

"""Keeps messages before a compaction drops them: (session, turn, messages, whether without content)."""

OutcomeWord = str

"""What was done: "" for nothing (go on with the step), `lost`, or a few words for logs. After words the turn has been
rung, or awaits its calls, and is no longer ours."""


@dataclass(frozen=True, slots=True)
class OpeningWave:
    """The calls of an opening wave, and how long the turn waits for them."""

    calls: tuple[PlannedCall, ...]
    limit_s: float


class AuxiliaryWork:
    """Does what comes before a step, when it is due."""

    def __init__(self, brain: Brain, auxiliary: Auxiliary, archive: ArchiveMessages, price: Price) -> None:
        self._brain = brain
        self._auxiliary = auxiliary
        self._archive = archive
        self._price = price

    def opening_wave(self, view: TurnView) -> OpeningWave | None:
        """Memory and the context pack, before the first step; None where the brain has neither."""
        if view.opened or view.step > 0:
            return None
        limit_s = opening_limit_s(self._brain, view.remaining_ms)
        calls = opening_calls(self._brain, view.request, limit_s)
        return OpeningWave(calls, limit_s) if calls else None

    def dispatch_opening(self, claim: TurnClaim, opening: OpeningWave, trying: OutageRetry) -> OutcomeWord:
        """Dispatch the opening wave."""
        word = trying(lambda: self._auxiliary.open(claim, opening.calls, opening.limit_s))
        return {"OPENED": "opened", "LOST": "lost"}.get(word, "")

    def reflect(self, claim: TurnClaim, view: TurnView, trying: OutageRetry) -> OutcomeWord:
        """Reflect on the step that was just made, at most once."""
        lost: list[bool] = []

        def claimed() -> bool:
            tokens = min(MAX_REFLECTION_TOKENS, estimate_messages(view.own_messages)) + REFLECTION_FRAME_TOKENS
            usd, under_way = self._worst_cost(view, tokens)
            begin = partial(self._auxiliary.begin, claim, "reflection", str(view.step), tokens, usd, under_way)
            word = trying(begin)
            if word == "LOST":
                lost.append(True)
            return word == "GO"

        engine = ReflectionEngine(lambda: self._model(view), claimed, self._price)
        with self._allowance(view).activate():
            made = engine.reflect(
                view.own_messages,
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
        kept = trying(lambda: self._auxiliary.commit_note(claim, "reflection", note, made.spend, data))
        return "reflected" if kept else "lost"

    def is_full(self, view: TurnView, step: PreparedStep) -> bool:
        """Whether the older messages are to be replaced by a summary before this step."""
        tokens = step.tracker.tokens(step.preparation.full_estimate)
        most, auto = step.tracker.max_context_tokens, self._brain.context.auto_compact
        return should_compact(tokens, most, auto, view.compaction_tried_at, view.history.length)

    def compact(self, claim: TurnClaim, view: TurnView, step: PreparedStep, trying: OutageRetry) -> OutcomeWord:
        """Replace them."""
        tracker, prepared = step.tracker, step.preparation
        tokens = tracker.tokens(prepared.full_estimate)
        return self._compact(claim, view, tracker, tokens, prepared.fixed_estimate, trying)

    def compact_now(self, claim: TurnClaim, view: TurnView, trying: OutageRetry) -> OutcomeWord:
        """Replace the older messages by a summary, however many there are: somebody asked for it."""
        limits = view.request.limits.over(self._brain.limits)
        size = view.history.tokens
        # It is to become half of what it is, not half of what a model takes; a short one stays.
        most = min(limits.max_context_tokens, max(MIN_COMPACTION_TOKENS, size))
        tracker = ContextTracker.from_state(most, view.known)
        return self._compact(claim, view, tracker, tracker.tokens(size), 0, trying) if size else ""

    def _compact(
        self,
        claim: TurnClaim,
        view: TurnView,
        tracker: ContextTracker,
        tokens: int,
        fixed_estimate: int,
        trying: OutageRetry,
    ) -> OutcomeWord:
        usd, under_way = self._worst_cost(view, tokens)
        begin = partial(self._auxiliary.begin, claim, "compaction", str(tokens), tokens, usd, under_way)
        word = trying(begin)
        if word != "GO":
            return "lost" if word == "LOST" else ""
        compactor = ContextCompactor(lambda: self._model(view), self._price, self._is_write)
        with self._allowance(view).activate():
            made = compactor.compact(
                view.history.messages,
                turn_id=claim.turn_id,
                tracker=tracker,
                fixed_estimate=fixed_estimate,
                timeout_s=view.remaining_ms / 1000,
                session_id=claim.session_id,
                step=view.step,
            )
        if made is None:
            return ""
        try:
            self._archive(claim.session_id, claim.turn_id, made.archive, self._brain.redact_logs)
        except Exception as failure:
            # Nothing may leave Redis that SQL does not have. The window is cut to fit meanwhile.
            log.error("context not compacted, SQL does not keep it", failure=failure, turn_id=claim.turn_id)
            note = {"method": "none", "dropped": 0, "tokens_before": tokens, "tokens_after": tokens}
            spend = made.spend
            kept = trying(lambda: self._auxiliary.commit_note(claim, "compaction", None, spend, note))
            return "compaction put off" if kept else "lost"
        commit = partial(
            self._auxiliary.compact,
            claim,
            expect=view.history.length,
            # A very long history is read in part: what is older than that goes, too.
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
        )
        word = trying(commit)
        log.info("context compacted", turn_id=claim.turn_id, step=view.step, method=made.method, did=word.lower())
        return {"COMPACTED": "compacted", "LOST": "lost"}.get(word, "")

    def _reads_of(self, messages: Sequence[Message]) -> list[str]:
        """Fingerprints of the reads whose results are among these."""
        calls = [call for message in messages for call in message.calls if not self._is_write(call.name)]
        return [fingerprint(c.name, c.arguments) for c in calls if isinstance(c.arguments, dict)]

    def _worst_cost(self, view: TurnView, tokens: int) -> tuple[float | None, tuple[Spend, ...]]:
        """What a call beside the steps may cost (None where the price is not known), and what is charged should its
        worker die over it."""
        try:
            auxiliary = self._model(view)
        except BrainqError:
            return None, ()
        usage = TokenUsage(input_tokens=tokens, estimated=True)
        asked, model = first_model(auxiliary.provider, auxiliary.model)
        lost = (LostRequest(provider=asked, model=model, usage=usage),)
        most = worst_cost_usd(auxiliary.provider, auxiliary.model, usage, self._price)
        return most, lost_spends("lost", view.step, lost, self._price)

    def _allowance(self, view: TurnView) -> Allowance:
        return turn_allowance(view, view.request.limits.over(self._brain.limits), self._price)

    def _is_write(self, name: str) -> bool:
        tool = self._brain.tools.get(name)
        return tool is None or not tool.spec.effect.is_read

    def _model(self, view: TurnView) -> AuxiliaryModel:
        if self._brain.auxiliary_model is not None:
            return AuxiliaryModel(*resolve_model(self._brain.auxiliary_model))
        return AuxiliaryModel(*resolve_model(view.request.model or self._brain.model, view.request.provider))
