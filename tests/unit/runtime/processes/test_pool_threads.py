"""Each pool of a process keeps a budget of threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from brainq.runtime.processes.pool_threads import PoolThreads


def test_each_pool_has_threads_of_its_own() -> None:
    threads = PoolThreads({"coordinator": 1, "parallel": 2})
    assert threads.pools == {"coordinator", "parallel"}
    assert [threads.try_take("parallel") for _ in range(3)] == [True, True, False]
    assert threads.try_take("coordinator")


def test_what_is_given_back_is_free() -> None:
    threads = PoolThreads({"serial": 1})
    assert threads.try_take("serial")
    threads.give_back("serial")
    assert threads.try_take("serial")


def test_a_pool_that_is_not_served_has_no_thread() -> None:
    assert not PoolThreads({"coordinator": 1}).try_take("finalizer")
    assert not PoolThreads().pools


def test_a_worker_says_later_what_it_serves() -> None:
    threads = PoolThreads()
    threads.serve({"finalizer": 1})
    assert threads.pools == {"finalizer"}
    assert threads.try_take("finalizer")


def test_a_thread_that_was_taken_before_pools_were_served_again_adds_none() -> None:
    threads = PoolThreads({"serial": 1})
    assert threads.try_take("serial")
    threads.serve({"serial": 1})
    threads.give_back("serial")
    assert [threads.try_take("serial") for _ in range(2)] == [True, False]


def test_threads_that_take_at_once_take_no_more_than_there_are() -> None:
    threads = PoolThreads({"parallel": 5})
    with ThreadPoolExecutor(8) as several:
        taken = list(several.map(threads.try_take, ["parallel"] * 100))
    assert sum(taken) == 5
