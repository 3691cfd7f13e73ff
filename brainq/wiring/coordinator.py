"""Builds what advances turns."""

from __future__ import annotations

from collections.abc import Callable

from brainq.brain import Brain
from brainq.contracts.usage import TokenUsage
from brainq.providers.pricing import cost_usd
from brainq.providers.resolve import resolve_model, warm_up
from brainq.tools.rankers import ranker_named
from brainq.turn.advance import Coordinator
from brainq.turn.auxiliary import AuxiliaryWork
from brainq.turn.begin import Beginner
from brainq.turn.context.selection import SemanticToolSelector
from brainq.turn.ending import Ender
from brainq.turn.patience import Patience
from brainq.turn.think import Thinker
from brainq.wiring.away import is_away
from brainq.wiring.parts import Parts
from brainq.wiring.webhooks import told_approvals


def make_coordinator(parts: Parts, alone: Callable[[str, str, int], str] | None) -> Coordinator:
    """
    alone   where turns go on that may be what kills their workers; None: in this very process
    """
    brain, state, store, people = parts.brain, parts.state, parts.store, parts.people
    auxiliary = AuxiliaryWork(brain, state.auxiliary, store.transcripts.archive, cost_usd)
    thinker = Thinker(
        brain=brain,
        turns=state.turns,
        budgets=state.budgets,
        beginner=Beginner(brain, store.messages.log_user, store.turns),
        auxiliary=auxiliary,
        approvals=told_approvals(parts.settings, store),
        brakes=people.brakes,
        price=cost_usd,
        selector=_selector(parts),
    )
    return Coordinator(
        owner=parts.owner,
        brain=brain,
        turns=state.turns,
        thinker=thinker,
        auxiliary=auxiliary,
        beats=parts.beats,
        stops=state.stops,
        brakes=people.brakes,
        ender=Ender(
            turns=state.turns,
            bounce=people.inputs.bounce,
            children=people.children,
            first_final_step=parts.order.first,
        ),
        alone=alone,
        is_away=is_away,
        patience=Patience(is_away),
    )


def warm_up_model(brain: Brain) -> None:
    """Import the price list and the SDK of the brain's model, which takes up to a second of CPU.

    For processes that ask models. Raises SetupError and InvalidInput for what is wrong with the model.
    """
    cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
    provider, _model = resolve_model(brain.model)
    warm_up(provider)


def _selector(parts: Parts) -> SemanticToolSelector | None:
    selection = parts.brain.selection
    if selection is None:
        return None
    return SemanticToolSelector(
        selection.max_tools_per_turn, selection.pinned, ranker_named(selection.ranking)
    )
