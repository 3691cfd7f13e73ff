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

EXTRACT_LIMIT_S = 60.0  # a model's 30 s, and the fallback after them
OBSERVE_LIMIT_S = 60.0
Item = TypeVar("Item", MemoryItem, Observation)


def _session_scope(session_id: str) -> str:
    return session_id


@dataclass(frozen=True, slots=True)
class MemoryServices:
    """A brain's extractor, learner and price of model calls, created once per process. A part that is None has no step.

    scope_of: returns the owner of the memories that a session's turns write.
    price: the price of the usage of its model calls.
    """

    extractor: MemoryExtractor | None = None
    learner: AutonomousResearchLearner | None = None
    scope_of: Callable[[str], str] = _session_scope
    price: Price = unknown_price

    def memory_scope(self, session_id: str) -> str:
        """Return the scope in which the session's turns write memories.

        Raises TypeError if `scope_of` returns no name.
        """
        found: Any = self.scope_of(session_id)
        if not isinstance(found, str) or not found:
            raise TypeError(f"Memory.scope returned {found!r} for a session; it must return a text")
        return found


def make_memory_services(
    brain: Brain, auxiliary: AuxiliaryModel | None, price: Price = unknown_price
) -> MemoryServices:
    """Return the objects for a brain's `model` and `rules`. The brain's own parts are used as they are."""
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
    """The finalizer step that calls the extractor and stores its items, in one transaction with the step.

    It runs for every ending, because what users say about themselves does not depend on the answer.
    """

    name = "memory"
    limit_s: float | None = None  # the extractor has a limit of its own

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
    """The finalizer step that calls the learner and stores its observations, in one transaction with the step.

    It runs for every ending, because a turn without an answer leaves a question open. It skips only a turn that was
    cancelled in the queue: the log has no message of it to learn from.
    """

    name = "learner"
    limit_s: float | None = None  # the learner has a limit of its own

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
    """Return the items of a brain's part within its limit. Raises TypeError for an item of another kind."""
    # The list is made within the limit, because a generator does its work when it is read.
    items: list[Any] = call_within(limit_s, part, lambda: list(find()))
    for item in items:
        if not isinstance(item, kind):
            raise TypeError(f"the {part} returned a {type(item).__name__}; it must return {kind.__name__}s")
    return items


def schedule_prompt_judges(turn: EndedTurn, prompts: Mapping[str, PromptTemplate]) -> tuple[str, ...]:
    """Return the judges that the turn's prompt template names, each once, in its order.

    Returns none for a turn without a whole answer of the model: the text after a limit, a timeout, a failure or a
    cancel is brainq's, and its score would count against the prompt. Also returns none for a `prompt_id` that the brain
    does not have, because producers may use their own.
    """
    if turn.ending is not Ending.COMPLETED or turn.stop_reason is not StopReason.ANSWERED:
        return ()
    template = prompts.get(turn.request.prompt_id or "")
    return () if template is None else tuple(dict.fromkeys(name for name in template.judges if name.strip()))


class ScheduleJudges:
    """The finalizer step that plans a judgement for each judge of the turn's prompt, and then rings for them.

    Judging itself is not part of the chain. A crash between planning and ringing only loses doorbells. The step's retry
    rings again, or the sweeper, which finds the due rows. A repeated doorbell finds its row taken.
    """

    name = "judges"
    limit_s: float | None = None  # it runs no code of the brain

    def is_configured(self, brain: Brain) -> bool:
        return any(template.judges for template in brain.prompts.values())

    def run(self, context: StepContext) -> None:
        claim = context.claim
        names = schedule_prompt_judges(context.turn, context.brain.prompts)
        context.records.record_judges(claim, claim.session_id, claim.turn_id, names)
        for name in names:
            context.chain.ring_judge(claim.session_id, claim.turn_id, name)
