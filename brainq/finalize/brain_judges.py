"""What a brain's turns are judged with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.judgement import Judge
from brainq.contracts.usage import Price, no_price
from brainq.providers.auxiliary import AuxiliaryModel


@dataclass(frozen=True, slots=True)
class BrainJudges:
    """All that differs between the judging of one brain's turns and of another's.

    own         the brain's judges
    auxiliary   the model of the shipped judges; None: they go by rules
    price       of what a model that judges uses
    redact      reasons and errors may quote the turn: SQL keeps the score and the kind of error only
    """

    own: Sequence[Judge]
    auxiliary: AuxiliaryModel | None
    redact: bool = False
    price: Price = no_price
