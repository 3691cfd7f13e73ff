"""What the machines of one process are built from."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.beats import Beats
from brainq.brains import Brains
from brainq.settings import Settings
from brainq.store.store import Store
from brainq.wiring.people import People
from brainq.wiring.state import State
from brainq.wiring.turn_brain import TurnBrains


@dataclass(frozen=True)
class Parts:
    """`owner` is this process's name in leases; `beats` renews those in Redis."""

    settings: Settings
    brains: Brains
    owner: str
    beats: Beats
    state: State
    store: Store
    people: People
    turn_brains: TurnBrains
