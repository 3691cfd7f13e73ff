"""ToolScheduler: the waves of one reply's calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.effect import Effect


@dataclass(frozen=True, slots=True)
class Schedulable:
    """What the scheduler needs of a call: its effect and, for reads, the resource keys it touches."""

    effect: Effect
    resources: frozenset[str] = frozenset()


class ToolScheduler:
    """Puts calls into numbered waves; waves run one after another.

    The model's order around anything that is not a read stands: reads before it, then it alone, then what
    follows. Reads that share a resource key go into separate waves. With `parallel=False`, or one call, every
    call has a wave of its own.
    """

    def __init__(self, *, parallel: bool = True) -> None:
        self._parallel = parallel

    def waves(self, calls: Sequence[Schedulable]) -> list[int]:
        """The wave of each call, counted from 1, in the calls' order.

        >>> read, write = Schedulable(Effect.READ_ONLY), Schedulable(Effect.LOCAL_WRITE)
        >>> ToolScheduler().waves([read, read, write, read])
        [1, 1, 2, 3]
        """
        numbers: list[int] = []
        wave, used, open_reads = 0, set[str](), False
        for call in calls:
            joins = self._parallel and open_reads and call.effect.is_read and not (call.resources & used)
            if not joins:
                wave, used = wave + 1, set()
            used |= call.resources
            open_reads = call.effect.is_read
            numbers.append(wave)
        return numbers
