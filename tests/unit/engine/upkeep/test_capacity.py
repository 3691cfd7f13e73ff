"""How large the fleet's room is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from brainq.engine.upkeep.sweeper import CapacityPublisher, TurnCapacity, turn_capacity
from tests.support.stand_in import stand_in


@pytest.mark.parametrize(
    ("threads", "most", "a_tenant", "size"),
    [
        (100, None, None, TurnCapacity(125, 88)),
        (300, None, None, TurnCapacity(375, 263)),
        (1, None, None, TurnCapacity(2, 2)),
        (0, None, None, TurnCapacity(125, 88)),
        (100, 50, None, TurnCapacity(50, 35)),
        (100, 1, None, TurnCapacity(1, 1)),
        (100, 50, 50, TurnCapacity(50, 50)),
        (100, None, 10, TurnCapacity(125, 10)),
        (100, 5, 10, TurnCapacity(5, 5)),
    ],
)
def test_one_tenant_keeps_most_threads_busy_and_some_are_for_others(
    threads: int, most: int | None, a_tenant: int | None, size: TurnCapacity
) -> None:
    assert turn_capacity(threads, most, a_tenant) == size


def test_a_keeper_says_what_the_coordinators_that_are_alive_can_work_on() -> None:
    said: list[object] = []

    class Room:
        def set_capacity(self, size: int, share: int, own: Mapping[str, int], caps: Mapping[str, int]) -> int:
            said.append((size, share, dict(own), dict(caps)))
            return 0

    alive = [4]
    publisher = CapacityPublisher(
        state=stand_in(Room()),
        threads=lambda: sum(alive),
        max_turns=None,
        max_turns_a_tenant=None,
        own={"acme:": 1},
        caps={"lab": 2},
        cap=None,
    )
    publisher.apply()
    alive.append(4)
    publisher.apply()
    assert said == [(5, 4, {"acme:": 1}, {"lab": 2}), (10, 7, {"acme:": 1}, {"lab": 2})]


@pytest.mark.parametrize(
    ("cap", "size"), [(2, TurnCapacity(2, 2)), (100, TurnCapacity(100, 88)), (200, TurnCapacity(125, 88))]
)
def test_the_cap_of_the_only_brain_is_a_room_that_one_tenant_may_have(cap: int, size: TurnCapacity) -> None:
    assert turn_capacity(100, None, None, cap) == size
