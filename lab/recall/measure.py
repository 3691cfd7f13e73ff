"""The arithmetic of recall: the tools that a selector would have shown, compared with the called ones."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from brainq.contracts.brain import ToolRanker
from brainq.contracts.tool import ToolSpec
from brainq.engine.turn.prompt.tool_selection import NO_CONTEXT, SemanticToolSelector
from lab.recall.cases import Case


@dataclass(slots=True)
class Recall:
    """The result for one `max_tools`.

    turns, whole     the number of turns, and of those whose called tools were all chosen
    calls, kept      the number of calls, and of those whose tool was chosen
    lost             tool -> the number of its calls that were lost
    """

    turns: int = 0
    whole: int = 0
    calls: int = 0
    kept: int = 0
    lost: Counter[str] = field(default_factory=Counter[str])

    @property
    def of_turns(self) -> float:
        return self.whole / self.turns if self.turns else 0.0

    @property
    def of_calls(self) -> float:
        return self.kept / self.calls if self.calls else 0.0

    def add(self, called: Sequence[str], chosen: frozenset[str]) -> None:
        """Count one turn."""
        lost = [name for name in called if name not in chosen]
        self.turns += 1
        self.whole += not lost
        self.calls += len(called)
        self.kept += len(called) - len(lost)
        self.lost.update(lost)


def measure(
    cases: Iterable[Case],
    specs: Sequence[ToolSpec],
    ranker: ToolRanker,
    sizes: Sequence[int],
    *,
    pinned: Sequence[str] = (),
    with_context: bool = True,
) -> dict[int, Recall]:
    """Return max_tools -> Recall. Tools are chosen for every case as the engine does at a turn's first step.

    Raises ValueError if a case calls a tool that the registry lacks.
    """
    selectors = {size: SemanticToolSelector(size, pinned, ranker) for size in sizes}
    found = {size: Recall() for size in sizes}
    known = {spec.name for spec in specs}
    for case in cases:
        if unknown := set(case.called) - known:
            raise ValueError(f"no tool of the registry is named {min(unknown)!r}")
        context = case.context if with_context else NO_CONTEXT
        for size, selector in selectors.items():
            chosen = selector.select(case.query, specs, (), context)
            found[size].add(case.called, frozenset(spec.name for spec in chosen))
    return found


def selection_ms(cases: Iterable[Case], specs: Sequence[ToolSpec], ranker: ToolRanker, max_tools: int) -> list[float]:
    """Return the sorted CPU times, in milliseconds, of a selection with context for each case.

    The times of all threads are added.

    The ranker's index of the tools is built before, because that happens once per process, not once per turn.
    """
    selector = SemanticToolSelector(max_tools, ranker=ranker)
    ranker.rank("anything", specs)
    taken: list[float] = []
    for case in cases:
        began = time.process_time()
        selector.select(case.query, specs, (), case.context)
        taken.append((time.process_time() - began) * 1000)
    return sorted(taken)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of sorted values. Raises ValueError if there are none."""
    if not values:
        raise ValueError("there are no values")
    return values[max(1, math.ceil(len(values) * percent / 100)) - 1]
