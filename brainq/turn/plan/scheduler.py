"""ToolScheduler: the waves of one reply's calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from brainq.contracts.status import Effect


@dataclass(frozen=True, slots=True)
class Schedulable:
    """What the scheduler needs of a call: its effect, for reads the resource keys it touches, and whether the client
    runs it."""

    effect: Effect
    resources: frozenset[str] = frozenset()
    is_client: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolScheduler:
    """Puts calls into numbered waves; waves run one after another.

    The model's order around anything that is not a read is kept: reads before it, then it alone, then what
    follows. Reads that share a resource key go into separate waves. Calls that the client runs stand among the reads:
    they are open side by side, and a write of the brain's waits for them. With `parallel=False`, or one call, every
    call has a wave of its own, but for neighbours that the client runs: what it does is its own to order.
    """

    parallel: bool = True

    def waves(self, calls: Sequence[Schedulable]) -> list[int]:
        """The wave of each call, counted from 1, in the calls' order.

        >>> read, write = Schedulable(Effect.READ_ONLY), Schedulable(Effect.LOCAL_WRITE)
        >>> ToolScheduler().waves([read, read, write, read])
        [1, 1, 2, 3]
        """
        numbers: list[int] = []
        wave, used, is_open, all_client = 0, set[str](), False, False
        for call in calls:
            shares = call.is_client or call.effect.is_read
            may = self.parallel or (all_client and call.is_client)
            if not (may and is_open and shares and not (call.resources & used)):
                wave, used, all_client = wave + 1, set(), True
            used |= call.resources
            is_open, all_client = shares, all_client and call.is_client
            numbers.append(wave)
        return numbers
