"""Which steps a brain's chain has, and what follows what. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from brainq.finalize.step import FinalStep


class StepOrder:
    """The configured steps of one brain, in order."""

    def __init__(self, steps: Sequence[FinalStep]) -> None:
        self._steps = {step.name: step for step in steps}
        self._names = [step.name for step in steps]

    @property
    def first(self) -> str:
        return self._names[0]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._names)

    def get(self, name: str) -> FinalStep | None:
        return self._steps.get(name)

    def after(self, name: str) -> str:
        """The step that follows, or "" after the last. A step this brain does not know is followed by the
        log: a chain that was rung by a newer or older release is still recorded and delivered, and what it
        had done before is not done twice."""
        if name not in self._steps:
            return "log" if "log" in self._steps else ""
        place = self._names.index(name) + 1
        return self._names[place] if place < len(self._names) else ""
