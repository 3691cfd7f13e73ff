"""The ledger: an independent record of the effects of tools on the world, which brainq does not write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.simulate.hub import Owner


@dataclass(eq=False, slots=True)
class Effect:
    """One run of a tool's function. `is_over` stays False if its process died during the run."""

    turn_id: str
    call_id: str
    attempt: int
    tool: str
    key: str
    lane: str
    owner: Owner
    began_us: int
    is_over: bool = False


@dataclass(eq=False)
class Ledger:
    """Every effect, in order. `broken` receives each broken promise when it is detected.

    once     the tools whose calls may start only once
    excused  returns whether the lane of an effect may be taken by another, because its process was frozen or Redis was
             away for longer than the lease
    """

    once: frozenset[str]
    broken: Callable[[str], None]
    excused: Callable[[Effect], bool]
    effects: dict[tuple[str, str], list[Effect]] = field(default_factory=dict[tuple[str, str], list[Effect]])
    running: dict[str, list[Effect]] = field(default_factory=dict[str, list[Effect]])
    tokens: dict[str, str] = field(default_factory=dict[str, str])
    counts: Counter[str] = field(default_factory=Counter[str])

    def begin(self, effect: Effect) -> None:
        """Record that a function starts."""
        earlier = self.effects.setdefault((effect.turn_id, effect.call_id), [])
        self.counts[effect.tool] += 1
        if earlier and effect.tool in self.once:
            self.broken(f"{effect.tool} of {effect.turn_id} {effect.call_id} ran twice: attempt {effect.attempt}")
        if any(effect.key != other.key for other in earlier):
            self.broken(f"{effect.turn_id} {effect.call_id} ran with another idempotency key")
        earlier.append(effect)
        if effect.lane:
            lane = self.running.setdefault(effect.lane, [])
            for other in lane:
                if not other.is_over and not other.owner.is_dead and not self.excused(other):
                    self.broken(
                        f"two functions run in lane {effect.lane}: {effect.turn_id} {effect.call_id} beside "
                        f"{other.turn_id} {other.call_id}"
                    )
            lane[:] = [other for other in lane if not other.is_over and not other.owner.is_dead]
            lane.append(effect)

    def happened(self, turn_id: str, call_id: str) -> bool:
        return (turn_id, call_id) in self.effects
