"""What operators do beside producers: look at any turn, also while Redis is away, and mend what was given up."""

from brainq.operator.facts import TurnFacts
from brainq.operator.operator import Operator

__all__ = ["Operator", "TurnFacts"]
