"""What the machines of one process are built from."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.finalize.order import StepOrder
from brainq.settings import Settings
from brainq.store.store import Store
from brainq.wiring.people import People
from brainq.wiring.state import State


@dataclass(frozen=True)
class Parts:
    """`owner` is this process's name in leases; `beats` renews those in Redis."""

    settings: Settings
    brain: Brain
    owner: str
    order: StepOrder
    beats: Beats
    state: State
    store: Store
    people: People
