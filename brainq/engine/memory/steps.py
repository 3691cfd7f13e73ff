"""Finalizer steps that extract memories, observe what the turn taught, and schedule its judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from brainq.contracts.brain import Memory, PromptTemplate
from brainq.contracts.memory import AutonomousResearchLearner, MemoryExtractor, MemoryItem, Observation
from brainq.contracts.model import Price, unknown_price
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import EndedTurn
from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.recall import recorded_turn
from brainq.engine.finalize.steps import StepContext
from brainq.engine.memory.extractors import ModelMemoryExtractor, RuleMemoryExtractor
from brainq.engine.memory.learner import RuleResearchLearner
from brainq.engine.models.asking.bill import Allowance
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.runtime.processes.threads import call_within

EXTRACT_LIMIT_S = 60.0  # a model's 30 s and what follows when it used them up
OBSERVE_LIMIT_S = 60.0
Item = TypeVar("Item", MemoryItem, Observation)


def _session_scope(session_id: str) -> str:
    return session_id


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """A brain's extractor, learner and auxiliary model, bound once a process. A part that is None has no step.

    scope_of    from a session's id to whose memories its turns write
    price       of what its model calls use
    """

    extractor: MemoryExtractor | None = None
    learner: AutonomousResearchLearner | None = None
    scope_of: Callable[[str], str] = _session_scope
    price: Price = unknown_price

    def memory_scope(self, session_id: str) -> str:
        """The scope that the session's turns write memories for. Raises TypeError when `scope_of` gives no name."""
        found: Any = self.scope_of(session_id)
        if not isinstance(found, str) or not found:
            raise TypeError(f"Memory.scope returned {found!r} for a session; it must return a text")
        return found


def make_memory_services(
    brain: Brain, auxiliary: AuxiliaryModel | None, price: Price = unknown_price
) -> MemoryServices:
    """Turns the brain's `model` and `rules` into objects; parts of its own stay as they are."""
    memory: Memory | None = brain.memory
    if memory is None:
        return MemoryServices()
    learner = RuleResearchLearner() if memory.learner == "rules" else memory.learner
    return MemoryServices(_extractor(memory, auxiliary), learner, memory.scope_of, price)


def _extractor(memory: Memory, auxiliary: AuxiliaryModel | None) -> MemoryExtractor | None:
    if memory.extractor == "model":
        rules = RuleMemoryExtractor()
        return rules if auxiliary is None else ModelMemoryExtractor(auxiliary, rules)
    return RuleMemoryExtractor() if memory.extractor == "rules" else memory.extractor


class ExtractMemories:
    """Asks the extractor and writes what it found, in one transaction with the step.

    However the turn ended: what users say of themselves does not depend on the answer they got.
    """

    name = "memory"
    limit_s: float | None = None  # its part has a limit of its own

    def __init__(self, services: MemoryServices, limit_s: float = EXTRACT_LIMIT_S) -> None:
        self._services = services
        self._limit_s = limit_s

    def is_configured(self, brain: Brain) -> bool:
        return self._services.extractor is not None

    def run(self, context: StepContext) -> None:
        services, turn, claim = self._services, context.turn, context.claim
        extractor = services.extractor
        if extractor is None:
            return
        recorded = recorded_turn(turn, context.conversation(), turn.context_pack_json, claim.step_key)
        scope = services.memory_scope(claim.session_id)
        allowance = Allowance(services.price)
        with allowance.activate():
            items = _items_of(MemoryItem, "memory extractor", self._limit_s, lambda: extractor.extract_turn(recorded))
        context.records.record_memories(claim, scope, items, tuple(allowance.spends))


class ObserveTurn:
    """Asks the learner and writes its observations, in one transaction with the step.

    However the turn ended: one without an answer leaves a question open. Only a turn that never began, because it
    was cancelled in the queue, is passed over: the log has no message of it to learn from.
    """

    name = "learner"
    limit_s: float | None = None  # its part has a limit of its own

    def __init__(self, services: MemoryServices, limit_s: float = OBSERVE_LIMIT_S) -> None:
        self._services = services
        self._limit_s = limit_s

    def is_configured(self, brain: Brain) -> bool:
        return self._services.learner is not None

    def run(self, context: StepContext) -> None:
        services, turn, claim = self._services, context.turn, context.claim
        source_event_id = context.records.source_event_id(claim.turn_id)
        learner = services.learner
        if learner is None or not source_event_id:
            return
        recorded = recorded_turn(turn, context.conversation(), turn.context_pack_json, claim.step_key)
        items = _items_of(
            Observation, "learner", self._limit_s, lambda: learner.observe_turn(recorded, source_event_id)
        )
        context.records.record_observations(claim, services.memory_scope(claim.session_id), source_event_id, items)


def _items_of(kind: type[Item], part: str, limit_s: float, find: Callable[[], Iterable[Item]]) -> Sequence[Item]:
    """What a part of the brain's finds within its limit. Raises TypeError for what is not of this kind."""
    # The list is made inside the limit: a generator does its work when it is read.
    items: list[Any] = call_within(limit_s, part, lambda: list(find()))
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"the {part} returned a {type(item).__name__}; it must return {kind.__name__}s")
    return items


def schedule_prompt_judges(turn: EndedTurn, prompts: Mapping[str, PromptTemplate]) -> tuple[str, ...]:
    """The judges that the turn's prompt template names, each once, in its order.

    None for a turn without an answer of the model's own: the text after a limit, a timeout, a failure or a
    cancel is brainq's, and its score would count against the prompt. None, too, for a `prompt_id` that the brain
    does not have: producers may number prompts of their own.
    """
    if turn.ending is not Ending.COMPLETED or turn.stop_reason is not StopReason.ANSWERED:
        return ()
    template = prompts.get(turn.request.prompt_id or "")
    return () if template is None else tuple(dict.fromkeys(name for name in template.judges if name.strip()))


class ScheduleJudges:
    """Plans a judgement for each judge of the turn's prompt, then rings for them. Judging is not part of the chain.

    A crash between the two loses doorbells only: they are rung again by the retry, or by the sweeper, which sees
    that the rows are due. A doorbell that comes twice finds its row taken.
    """

    name = "judges"
    limit_s: float | None = None  # no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return any(template.judges for template in brain.prompts.values())

    def run(self, context: StepContext) -> None:
        claim = context.claim
        names = schedule_prompt_judges(context.turn, context.brain.prompts)
        context.records.record_judges(claim, claim.session_id, claim.turn_id, names)
        for name in names:
            context.chain.ring_judge(claim.session_id, claim.turn_id, name)
