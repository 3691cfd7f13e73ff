"""Builds what advances turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brainq.brain.brain import Brain
from brainq.brain.brains import Brains
from brainq.contracts.model import TokenUsage
from brainq.models.asking.permits import PermitPolicy
from brainq.models.costs import cost_usd
from brainq.models.resolve import resolve_model, warm_up
from brainq.tools.ranking import ranker_by_name
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.begin import TurnStarter
from brainq.turn.coordinator import Coordinator, CoordinatorRuntime
from brainq.turn.decide import ThinkingManager
from brainq.turn.ending import Ender
from brainq.turn.outage import OutagePolicy
from brainq.turn.prompt.blob_cache import BlobCache
from brainq.turn.prompt.tool_selection import SemanticToolSelector
from brainq.turn.step import StepPipeline
from brainq.wiring.final_steps import FIRST_STEP
from brainq.wiring.services import Services, approval_webhooks, is_unavailable

HOLD_S = 2.0  # a wait for a place among a model's requests that is no longer keeps its thread


def make_coordinator(parts: Services, alone: Callable[[str, str, int], str] | None) -> Coordinator:
    """
    alone   where turns go on that may be what kills their workers; None: in this very process
    """
    state, people = parts.state, parts.people
    return Coordinator(
        owner=parts.owner,
        brains=parts.brains.each(partial(_coordinator_runtime, parts, BlobCache(parts.store.blobs))),
        turns=state.turns,
        beats=parts.beats,
        stops=state.stops,
        brakes=people.brakes,
        ender=Ender(
            turns=state.turns, bounce=people.inputs.bounce, children=people.children, first_final_step=FIRST_STEP
        ),
        taking=PermitPolicy(state.rates, HOLD_S),
        alone=alone,
        is_away=is_unavailable,
        patience=OutagePolicy(is_unavailable),
    )


def warm_up_models(brains: Brains) -> None:
    """Import the price list and the SDKs of the brains' models, which takes up to a second of CPU each.

    For processes that ask models. Raises SetupError and InvalidInput for what is wrong with a model.
    """
    cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
    for brain in brains:
        provider, _model = resolve_model(brain.model)
        warm_up(provider)


def _coordinator_runtime(parts: Services, blobs: BlobCache, brain: Brain) -> CoordinatorRuntime:
    state, store = parts.state, parts.store
    auxiliary = AuxiliaryWork(brain, state.auxiliary, store.transcripts.archive, cost_usd)
    thinker = StepPipeline(
        brain=brain,
        turns=state.turns,
        budgets=state.budgets,
        beginner=TurnStarter(brain, store.messages.log_user, store.turns),
        auxiliary=auxiliary,
        approvals=approval_webhooks(parts.settings, store),
        brakes=parts.people.brakes,
        price=cost_usd,
        blobs=blobs,
        selector=_selector(brain),
    )
    return CoordinatorRuntime(brain, thinker, auxiliary, ThinkingManager(brain.thinking))


def _selector(brain: Brain) -> SemanticToolSelector | None:
    selection = brain.selection
    if selection is None:
        return None
    return SemanticToolSelector(selection.max_tools_per_turn, selection.pinned, ranker_by_name(selection.ranking))
