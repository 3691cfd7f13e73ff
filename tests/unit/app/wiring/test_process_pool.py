"""Who shares a process with whom in quarantine, and who waits."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from brainq.errors import SetupError
from brainq.runtime.processes.quarantine_pool import (
    FILL_FIRST,
    MAX_MEMBERS,
    PooledProcess,
    ProcessPool,
    choose_process,
    group_size,
)
from tests.support.wait import wait_until

MOST_PROCESSES = 8


class FakeProcess:
    def __init__(self, on_gone: Callable[[str], object]) -> None:
        self.on_gone = on_gone
        self.is_alive = True
        self.kills = 0

    def kill(self) -> None:
        self.is_alive = False
        self.kills += 1


class Pool(ProcessPool):
    """Its processes are none; `started` has them all."""

    def __init__(self) -> None:
        self.started: list[FakeProcess] = []
        super().__init__(self._begin, MOST_PROCESSES)  # pyright: ignore[reportArgumentType]

    def _begin(self, on_gone: Callable[[str], object]) -> FakeProcess:
        self.started.append(FakeProcess(on_gone))
        return self.started[-1]

    def at_once(self, size: int) -> PooledProcess:
        found = self.join(size, never, 60.0)
        assert found is not None
        return found


def never() -> bool:
    raise AssertionError("it had to wait")


def test_a_group_that_died_goes_on_in_groups_so_small_that_all_processes_have_one() -> None:
    assert group_size(0, MOST_PROCESSES) == MAX_MEMBERS
    assert [group_size(among, MOST_PROCESSES) for among in (1, 2, MOST_PROCESSES)] == [1, 1, 1]
    assert group_size(MAX_MEMBERS, MOST_PROCESSES) == 2
    for processes, rounds in ((1, 4), (2, 4), (4, 2), (8, 2)):
        size = MAX_MEMBERS
        for _ in range(rounds):
            assert size > 1
            size = group_size(size, processes)
        assert size == 1


def test_suspects_are_spread_over_the_processes() -> None:
    pool = Pool()
    few = [pool.at_once(MAX_MEMBERS) for _ in range(FILL_FIRST)]
    assert len(pool.started) == 1, "a few share one: another costs a start"
    many = [pool.at_once(MAX_MEMBERS) for _ in range(60 - FILL_FIRST)]
    assert len(pool.started) == MOST_PROCESSES
    assert {shared.members for shared in (*few, *many)} == {7, 8}


def test_those_of_another_group_size_share_nothing() -> None:
    shared = [PooledProcess(16, members=3), PooledProcess(2, members=1), PooledProcess(1, members=1)]
    assert choose_process(shared, 2, 4) is shared[1]
    assert choose_process(shared, 16, 4) is shared[0]
    fresh = choose_process(shared, 1, 4)
    assert fresh is not None
    assert fresh not in shared
    assert choose_process(shared, 1, 3) is None
    shared[1].members = 2
    assert choose_process(shared, 2, 3) is None


def test_nobody_comes_into_a_process_that_died_and_who_was_in_it_learns_how_many_were() -> None:
    pool = Pool()
    first, same = pool.at_once(16), pool.at_once(16)
    assert first is same
    pool.started[0].on_gone("was killed by signal 9")
    pool.leave(first)
    assert (first.among, first.how) == (2, "was killed by signal 9")
    assert pool.started[0].kills == 0, "the other one has not looked how it died"
    assert pool.at_once(16) is not first
    pool.leave(first)
    assert pool.started[0].kills == 1


def test_an_idle_process_that_dies_is_killed_at_once() -> None:
    """It is reaped, its socket closed, and its group's number forgotten."""
    pool = Pool()
    pool.leave(pool.at_once(1))
    assert pool.started[0].kills == 0
    pool.started[0].on_gone("was killed by signal 9")
    assert pool.started[0].kills == 1
    pool.at_once(1)
    assert len(pool.started) == 2


def test_an_idle_process_that_nobody_saw_die_is_killed_before_another_is_used() -> None:
    pool = Pool()
    pool.leave(pool.at_once(1))
    pool.started[0].is_alive = False
    pool.at_once(1)
    assert pool.started[0].kills == 1
    assert len(pool.started) == 2


def test_one_idle_process_is_kept_and_used_for_any_size() -> None:
    pool = Pool()
    both = [pool.at_once(1), pool.at_once(1)]
    for shared in both:
        pool.leave(shared)
    assert [process.kills for process in pool.started] == [0, 1]
    assert pool.at_once(16) is both[0]
    pool.close()
    assert pool.started[0].kills == 1


def test_places_are_given_in_the_order_they_were_asked_for() -> None:
    pool = Pool()
    held = [pool.at_once(1) for _ in range(MOST_PROCESSES)]
    came: list[int] = []
    asked: list[int] = []

    def wait_for_place(number: int) -> None:
        def goes_on() -> bool:
            asked.append(number)
            return True

        if pool.join(1, goes_on, 60.0) is not None:
            came.append(number)

    threads = [threading.Thread(target=wait_for_place, args=[number]) for number in range(3)]
    for number, thread in enumerate(threads):
        thread.start()
        wait_until(lambda n=number: n in asked, "it waits")
    for number in range(3):
        pool.leave(held[number])
        wait_until(lambda n=number: len(came) > n, "the next has a place")
    for thread in threads:
        thread.join()
    assert came == [0, 1, 2]
    assert len(pool.started) == MOST_PROCESSES


def test_one_that_is_not_wanted_any_more_leaves_the_queue() -> None:
    pool = Pool()
    held = [pool.at_once(1) for _ in range(MOST_PROCESSES)]
    assert pool.join(1, lambda: False, 60.0) is None
    pool.leave(held[0])
    assert pool.at_once(1) is held[0]


def test_where_no_process_can_be_started_the_queue_goes_on() -> None:
    def start(_: object) -> FakeProcess:
        raise OSError(11, "Resource temporarily unavailable")

    pool = ProcessPool(start, 1)  # pyright: ignore[reportArgumentType]
    for _ in range(2):
        with pytest.raises(SetupError, match="Resource temporarily unavailable"):
            pool.join(1, never, 60.0)
