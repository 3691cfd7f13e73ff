"""Builds what advances turns."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from brainq.brain import Brain
from brainq.brains import Brains
from brainq.contracts.usage import TokenUsage
from brainq.finalize.steps import FIRST_STEP
from brainq.observe.tracing import tracer
from brainq.providers.places import Taking
from brainq.providers.pricing import cost_usd
from brainq.providers.resolve import resolve_model, warm_up
from brainq.tools.rankers import ranker_named
from brainq.turn.advance import Coordinator
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.begin import Beginner
from brainq.turn.brain_turns import BrainTurns
from brainq.turn.context.blob_cache import BlobCache
from brainq.turn.context.selection import SemanticToolSelector
from brainq.turn.ending import Ender
from brainq.turn.patience import Patience
from brainq.turn.stream import of_the_model
from brainq.turn.think import Thinker
from brainq.turn.thinking import ThinkingManager
from brainq.turn.traced import TracedCoordinator
from brainq.turn.traced_stream import traced_stream
from brainq.wiring.away import is_away
from brainq.wiring.parts import Parts
from brainq.wiring.webhooks import told_approvals

HOLD_S = 2.0  # a wait for a place among a model's requests that is no longer keeps its thread


def make_coordinator(parts: Parts, alone: Callable[[str, str, int], str] | None) -> Coordinator:
    """
    alone   where turns go on that may be what kills their workers; None: in this very process
    """
    state, people = parts.state, parts.people
    kind = Coordinator if tracer() is None else TracedCoordinator
    return kind(
        owner=parts.owner,
        brains=parts.brains.each(partial(_turns_of, parts, BlobCache(parts.store.blobs))),
        turns=state.turns,
        beats=parts.beats,
        stops=state.stops,
        brakes=people.brakes,
        ender=Ender(
            turns=state.turns,
            bounce=people.inputs.bounce,
            children=people.children,
            first_final_step=FIRST_STEP,
        ),
        taking=Taking(state.rates, HOLD_S),
        alone=alone,
        is_away=is_away,
        patience=Patience(is_away),
    )


def warm_up_models(brains: Brains) -> None:
    """Import the price list and the SDKs of the brains' models, which takes up to a second of CPU each.

    For processes that ask models. Raises SetupError and InvalidInput for what is wrong with a model.
    """
    cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
    for brain in brains:
        provider, _model = resolve_model(brain.model)
        warm_up(provider)


def _turns_of(parts: Parts, blobs: BlobCache, brain: Brain) -> BrainTurns:
    state, store = parts.state, parts.store
    auxiliary = AuxiliaryWork(brain, state.auxiliary, store.transcripts.archive, cost_usd)
    thinker = Thinker(
        brain=brain,
        turns=state.turns,
        budgets=state.budgets,
        beginner=Beginner(brain, store.messages.log_user, store.turns),
        auxiliary=auxiliary,
        approvals=told_approvals(parts.settings, store),
        brakes=parts.people.brakes,
        price=cost_usd,
        blobs=blobs,
        selector=_selector(brain),
        ask=of_the_model if tracer() is None else traced_stream(of_the_model),
    )
    return BrainTurns(brain, thinker, auxiliary, ThinkingManager(brain.thinking))


def _selector(brain: Brain) -> SemanticToolSelector | None:
    selection = brain.selection
    if selection is None:
        return None
    return SemanticToolSelector(
        selection.max_tools_per_turn, selection.pinned, ranker_named(selection.ranking)
    )
