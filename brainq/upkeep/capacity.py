"""Capacity: how many turns may be live at once, by the coordinators' threads or by the deployment's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from brainq.ports.redis_turns import Capacity

DEFAULT_THREADS = 100  # threads of one coordinator, where none has announced itself


@dataclass(frozen=True, slots=True)
class TurnCapacity:
    """How many turns may be live, and how many of one tenant."""

    all: int
    tenant: int


def turn_capacity(threads: int, most: int | None, most_a_tenant: int | None, cap: int | None = None) -> TurnCapacity:
    """The room for coordinators with so many threads. Pure.

    `cap` is that of the deployment's brain, where it has one brain alone, whose turns are all there are.

    By default there is more room than threads, so that few are idle while turns wait for their calls; and one tenant
    alone keeps seven of eight threads busy, so that others' turns find room, and a thread for each step, at once.
    """
    size = most or -(-(threads or DEFAULT_THREADS) * 5 // 4)
    share = most_a_tenant or -(-size * 7 // 10)
    size = size if cap is None else min(size, cap)
    return TurnCapacity(size, min(size, share))


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityKeeper:
    """Says how large the room is, and mends it.

    threads         of all coordinators that are alive
    most, most_a_tenant   what the deployment says; None: by the threads
    own             tenants with a share of their own, by the prefix of their sessions
    caps            how many turns of a brain may be live, by its name, where it has a cap
    cap             that of the only brain, whose turns name none
    """

    capacity: Capacity
    threads: Callable[[], int]
    max_turns: int | None
    max_turns_a_tenant: int | None
    own: Mapping[str, int]
    caps: Mapping[str, int]
    cap: int | None

    def apply(self) -> None:
        size = turn_capacity(self.threads(), self.max_turns, self.max_turns_a_tenant, self.cap)
        self.capacity.keep(size.all, size.tenant, self.own, self.caps)
