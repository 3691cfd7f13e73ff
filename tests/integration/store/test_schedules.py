"""Schedules: how many of one tenant have a run to come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from brainq.store.store import Store
from tests.integration.store.examples import schedule


def test_a_tenant_has_no_more_than_it_may(store: Store) -> None:
    rows = store.schedules
    assert [rows.put(schedule(f"acme:{i}"), 2) for i in range(3)] == [True, True, False]
    assert rows.get("acme:2") is None
    assert rows.put(schedule("acme:1", 7_000), 2)  # set anew
    assert rows.put(schedule("acme2:1"), 2)
    assert [rows.put(schedule(f"plain{i}"), 2) for i in range(3)] == [True, True, False]
    assert rows.pause("acme:0")
    assert not rows.put(schedule("acme:3"), 2)
    assert rows.remove("acme:0")
    assert rows.put(schedule("acme:3"), 2)


def test_one_whose_only_run_is_over_does_not_count_until_it_is_set_anew(store: Store) -> None:
    rows = store.schedules
    assert rows.put(schedule("acme:over", None), 1)
    assert rows.put(schedule("acme:1"), 1)
    assert not rows.put(schedule("acme:over"), 1)


def test_those_that_come_at_once_are_counted_one_after_another(store: Store) -> None:
    def put(number: int) -> bool:
        return store.schedules.put(schedule(f"acme:{number}"), 3)

    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(put, range(16)))
    assert sum(kept) == 3
    assert len(store.schedules.list(["acme:"], 20)) == 3


def test_one_that_was_set_anew_keeps_its_new_run_when_a_sweeper_moves_the_old_one(store: Store) -> None:
    rows = store.schedules
    assert rows.put(schedule("acme:1", 5_000))
    assert rows.put(schedule("acme:1", 9_000))
    assert not rows.move("id-acme:1", 5_000, 6_000, turn_id="turn-1", note="begun")
    kept = rows.get("acme:1")
    assert kept is not None
    assert (kept.next_ms, kept.last_due_ms, kept.last_turn_id, kept.note) == (9_000, None, "", "")
    assert rows.move("id-acme:1", 9_000, 10_000)
