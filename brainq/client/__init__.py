"""What producers use: submit a turn, follow it, get its result."""

from brainq.client.client import Client
from brainq.client.handle import TurnHandle

__all__ = ["Client", "TurnHandle"]
