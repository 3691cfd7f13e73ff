"""Builds the machines of one process from its settings: the only place where all layers meet."""

from brainq.wiring.bells import doorbells
from brainq.wiring.wiring import Wiring

__all__ = ["Wiring", "doorbells"]
