"""Build the machines of a worker process that advance turns, run calls, and share limits with other cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from brainq.adapters.sql.store import Store
from brainq.app.wiring.services import approval_webhooks, is_unavailable
from brainq.app.wiring.state import shares_limits
from brainq.contracts.memory import MemoryRetriever
from brainq.contracts.model import TokenUsage
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.run import CallRunner
from brainq.engine.calls.server_tasks import ServerTaskWatcher
from brainq.engine.calls.settle import ResultFiles
from brainq.engine.finalize.steps import FIRST_STEP
from brainq.engine.models.asking.rate_permit import PermitPolicy
from brainq.engine.models.costs import cost_usd
from brainq.engine.models.providers import resolve_model, warm_up
from brainq.engine.tools.ranking import ranker_by_name
from brainq.engine.turn.before_step import AuxiliaryWork
from brainq.engine.turn.begin import TurnStarter
from brainq.engine.turn.coordinator import Coordinator, CoordinatorRuntime
from brainq.engine.turn.ending import Ender
from brainq.engine.turn.prompt.tool_selection import SemanticToolSelector
from brainq.engine.turn.reflection import ThinkingManager
from brainq.engine.turn.replies import ReplyHandler
from brainq.engine.turn.step import StepPipeline, StepRunner
from brainq.engine.turn.step_money import StepMoney
from brainq.engine.turn.step_request import BlobCache, StepPreparer
from brainq.runtime.leases import LeaseRenewer
from brainq.runtime.outage import OutagePolicy

if TYPE_CHECKING:
    from brainq.app.wiring.wiring import Wiring
    from brainq.engine.upkeep.budget_leases import BudgetLeaseUpdater
    from brainq.engine.upkeep.limit_shares import LimitShareUpdater
    from brainq.engine.upkeep.poller import Poller

HOLD_S = 2.0  # If a permit needs a longer wait, the wait gives up its thread.
GRACE_SHARE = 0.75  # of the grace period of a cancelled turn, for the function


def make_coordinator(wiring: Wiring, quarantine: Callable[[str, str, int], str] | None) -> Coordinator:
    """Build the coordinator.

    quarantine   advances turns that may kill their worker in another process; None in such a process
    """
    state, people = wiring.state, wiring.people
    return Coordinator(
        owner=wiring.owner,
        brains=wiring.brains.each(partial(_coordinator_runtime, wiring, BlobCache(wiring.store.blobs))),
        turns=state.turns,
        beats=wiring.beats,
        stops=state.stops,
        brakes=people.brakes,
        ender=Ender(
            turns=state.turns,
            bounce=people.bounced_inputs.bounce,
            children=people.children,
            first_final_step=FIRST_STEP,
        ),
        permits=PermitPolicy(state.rates, HOLD_S),
        quarantine=quarantine,
        is_unavailable=is_unavailable,
        outages=OutagePolicy(is_unavailable),
    )


def warm_up_models(brains: Brains) -> None:
    """Import the price list and the SDKs of the brains' models, which takes up to a second of CPU each.

    For processes that ask models. Raises SetupError and InvalidInput for a model that cannot be used.
    """
    cost_usd("openai", "warm-up", TokenUsage(input_tokens=1))
    for brain in brains:
        provider, _model = resolve_model(brain.model)
        warm_up(provider)


def _coordinator_runtime(wiring: Wiring, blobs: BlobCache, brain: Brain) -> CoordinatorRuntime:
    state, store = wiring.state, wiring.store
    auxiliary = AuxiliaryWork(brain, state.turns, store.transcripts.archive, cost_usd, wiring.budgets)
    approvals = approval_webhooks(wiring.settings, store)
    replies = ReplyHandler(brain=brain, turns=state.turns, approvals=approvals)
    pipeline = StepPipeline(
        brain=brain,
        turns=state.turns,
        starter=TurnStarter(brain, store.messages.log_user, store.turns),
        auxiliary=auxiliary,
        brakes=wiring.people.brakes,
        price=cost_usd,
        preparer=StepPreparer(brain, _selector(brain)),
        attempts=StepRunner(
            brain=brain,
            turns=state.turns,
            replies=replies,
            price=cost_usd,
            blobs=blobs,
            money=StepMoney(brain=brain, turns=state.turns, budgets=wiring.budgets),
            max_reply_bytes=wiring.settings.max_reply_bytes,
        ),
    )
    return CoordinatorRuntime(brain, pipeline, auxiliary, ThinkingManager(brain.thinking))


def _selector(brain: Brain) -> SemanticToolSelector | None:
    selection = brain.selection
    if selection is None:
        return None
    return SemanticToolSelector(selection.max_tools_per_turn, selection.pinned, ranker_by_name(selection.ranking))


def make_runner(wiring: Wiring) -> CallRunner:
    settings, state, people = wiring.settings, wiring.state, wiring.people
    return CallRunner(
        owner=wiring.owner,
        brains=wiring.brains,
        calls=state.calls,
        intents=wiring.store.calls,
        beats=wiring.beats,
        executor=BoundedToolExecutor(
            brain_ref=settings.app,
            # The rest of the time is for noticing the cancel, and for recording how the call ended.
            cancel_grace_s=settings.cancel_grace_s * GRACE_SHARE,
        ),
        retriever=partial(_retriever, wiring.store),
        stops=state.stops,
        holds=state.holds,
        outside=state.outside,
        children=people.children,
        brakes=people.brakes,
        files=ResultFiles(wiring.store.blobs, settings.file_limits),
        watch=ServerTaskWatcher(
            tasks=state.outside,
            brains=wiring.brains,
            # A renewer of its own, so that many parked calls do not delay the heartbeats of calls that run.
            beats=LeaseRenewer(settings.beat_s),
            lease_s=settings.lease_s,
            complete=people.outside.complete,
            fail=people.outside.fail,
        ),
    )


def _retriever(store: Store, brain: Brain) -> MemoryRetriever | None:
    memory = brain.memory
    if memory is None:
        return None
    if memory.retriever == "sql":
        from brainq.adapters.sql.repositories.knowledge import SqlMemoryRetriever

        return SqlMemoryRetriever(store.memories, memory.scope_of)
    return memory.retriever


def make_pollers(wiring: Wiring) -> tuple[Poller, ...]:
    """Return the pollers of a cell's shares of limits and its leases of budgets. Returns none if there is one cell."""
    if not shares_limits(wiring.settings):
        return ()
    from brainq.engine.upkeep import budget_leases, limit_shares
    from brainq.engine.upkeep.poller import Poller

    return (
        Poller(_share_updater(wiring), "brainq-shares", "update shares of limits", limit_shares.LOOK_EVERY_S),
        Poller(_lease_updater(wiring), "brainq-leases", "update leases of budgets", budget_leases.LOOK_EVERY_S),
    )


def _share_updater(wiring: Wiring) -> LimitShareUpdater:
    from brainq.adapters.sql.repositories.limit_shares import home_shares
    from brainq.engine.upkeep.limit_shares import LimitShareUpdater

    cells = wiring.settings.all_cells()
    return LimitShareUpdater(
        cell=wiring.settings.cell,
        cells=len(cells),
        limits=wiring.state.rates,
        home=cache(lambda: home_shares(cells[0].sql_url.get_secret_value(), len(cells))),
    )


def _lease_updater(wiring: Wiring) -> BudgetLeaseUpdater:
    from brainq.adapters.sql.repositories.shared_budgets import SharedBudgets
    from brainq.engine.upkeep.budget_leases import BudgetLeaseUpdater

    rows = wiring.budgets.rows
    assert isinstance(rows, SharedBudgets)  # always, if there are several cells
    return BudgetLeaseUpdater(budgets=wiring.budgets, leases=rows, counters=wiring.state.money)
