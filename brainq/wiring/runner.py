"""Builds what runs calls."""

from __future__ import annotations

from functools import partial

from brainq.brain.brain import Brain
from brainq.calls.executor import BoundedToolExecutor
from brainq.calls.run import CallRunner
from brainq.calls.server_tasks import ServerTaskWatcher
from brainq.calls.settle import ResultFiles
from brainq.contracts.memory import MemoryRetriever
from brainq.leases import LeaseRenewer
from brainq.store.store import Store
from brainq.wiring.services import Services

GRACE_SHARE = 0.75  # of a cancelled turn's: a function may use so much of it


def make_runner(parts: Services) -> CallRunner:
    settings, state, people = parts.settings, parts.state, parts.people
    return CallRunner(
        owner=parts.owner,
        brains=parts.brains,
        calls=state.calls,
        lanes=state.lanes,
        intents=parts.store.calls,
        budgets=state.budgets,
        beats=parts.beats,
        executor=BoundedToolExecutor(
            brain_ref=settings.app,
            # The rest is for hearing of the cancel, and for recording how the call ended.
            cancel_grace_s=settings.cancel_grace_s * GRACE_SHARE,
        ),
        retriever=partial(_retriever, parts.store),
        stops=state.stops,
        holds=state.holds,
        outside=state.outside,
        children=people.children,
        brakes=people.brakes,
        files=ResultFiles(parts.store.blobs, settings.file_limits),
        watch=ServerTaskWatcher(
            tasks=state.server_tasks,
            brains=parts.brains,
            beats=LeaseRenewer(
                settings.beat_s
            ),  # parked calls take no room: however many wait, calls that run are beaten for
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
        from brainq.store.repositories.knowledge import SqlMemoryRetriever

        return SqlMemoryRetriever(store.memories, memory.scope_of)
    return memory.retriever
