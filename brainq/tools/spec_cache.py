"""What was built from a set of tool specs, kept while the same specs come again."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from brainq.contracts.tool import ToolSpec

Built = TypeVar("Built")

KEPT = 8  # a process serves one brain; a few sets more, for brains whose tools come and go


class SpecCache(Generic[Built]):
    """Builds once for each set of specs, in their order; keeps the last few. Safe between threads.

    Specs are compared by identity, because they are frozen and comparing a hundred JSON schemas would cost
    more than the search. The entry holds its specs, so that an identity is never used again while it counts.
    """

    def __init__(self, build: Callable[[Sequence[ToolSpec]], Built]) -> None:
        self._build = build
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, ...], tuple[tuple[ToolSpec, ...], Built]] = OrderedDict()

    def get(self, specs: Sequence[ToolSpec]) -> Built:
        """What `build` made of these specs. Other threads wait for a build rather than repeat it."""
        key = tuple(map(id, specs))
        with self._lock:
            found = self._kept.get(key)
            if found is None:
                held = tuple(specs)
                found = self._kept[key] = (held, self._build(held))
                if len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            else:
                self._kept.move_to_end(key)
            return found[1]
