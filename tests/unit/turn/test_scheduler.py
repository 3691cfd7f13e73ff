"""Waves: reads side by side, anything else alone, and the model's order around it."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.status import Effect
from brainq.turn.call_plan import Schedulable, ToolScheduler

READ, WRITE = Schedulable(Effect.READ_ONLY), Schedulable(Effect.LOCAL_WRITE)
OURS = Schedulable(Effect.NETWORK, is_client=True)
SEND, WIPE = Schedulable(Effect.NETWORK), Schedulable(Effect.DESTRUCTIVE)


def read_of(*resources: str) -> Schedulable:
    return Schedulable(Effect.READ_ONLY, frozenset(resources))


@pytest.mark.parametrize(
    ("calls", "waves"),
    [
        ([], []),
        ([WRITE], [1]),
        ([READ, READ, READ], [1, 1, 1]),
        ([WRITE, WRITE], [1, 2]),
        ([WRITE, READ], [1, 2]),
        ([READ, WRITE, READ, READ, SEND, WIPE], [1, 2, 3, 3, 4, 5]),
        ([OURS, OURS, READ, OURS], [1, 1, 1, 1]),
        ([READ, OURS, WRITE, OURS, OURS, SEND], [1, 1, 2, 3, 3, 4]),
        ([read_of("a"), read_of("b"), read_of("a")], [1, 1, 2]),
        ([read_of("a", "b"), read_of("b", "c"), read_of("a")], [1, 2, 2]),
    ],
)
def test_waves(calls: list[Schedulable], waves: list[int]) -> None:
    assert ToolScheduler().waves(calls) == waves


SOME = st.lists(
    st.builds(Schedulable, st.sampled_from(list(Effect)), st.frozensets(st.sampled_from("abc"), max_size=2)),
    max_size=12,
)


@given(SOME)
def test_what_holds_of_all_waves(calls: list[Schedulable]) -> None:
    numbers = ToolScheduler().waves(calls)
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, max(numbers, default=0) + 1))
    members: dict[int, list[Schedulable]] = defaultdict(list)
    for number, call in zip(numbers, calls, strict=True):
        members[number].append(call)
    for wave in members.values():
        assert len(wave) == 1 or all(call.effect.is_read for call in wave)
        keys = [key for call in wave for key in call.resources]
        assert len(keys) == len(set(keys))


@given(SOME)
def test_one_at_a_time_is_one_a_wave(calls: list[Schedulable]) -> None:
    assert ToolScheduler(parallel=False).waves(calls) == list(range(1, len(calls) + 1))


def test_one_at_a_time_is_of_the_brains_own_calls() -> None:
    calls = [READ, OURS, OURS, READ, OURS, WRITE, OURS]
    assert ToolScheduler(parallel=False).waves(calls) == [1, 2, 2, 3, 4, 5, 6]
