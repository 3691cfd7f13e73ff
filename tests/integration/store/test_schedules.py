"""Schedules: how many of one tenant have a run to come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from brainq.contracts.schedule import ScheduleRow
from brainq.store.store import Store


def row(name: str, next_ms: int | None = 5_000) -> ScheduleRow:
    return ScheduleRow(
        schedule_id=f"id-{name}",
        name=name,
        timing="once",
        zone="UTC",
        session_id="s",
        request={},
        on_running="skip",
        missed="once",
        paused=False,
        start_ms=5_000,
        next_ms=next_ms,
    )


def test_a_tenant_has_no_more_than_it_may(store: Store) -> None:
    rows = store.schedules
    assert [rows.put(row(f"acme:{i}"), 2) for i in range(3)] == [True, True, False]
    assert rows.get("acme:2") is None
    assert rows.put(row("acme:1", 7_000), 2)  # set anew
    assert rows.put(row("acme2:1"), 2)
    assert [rows.put(row(f"plain{i}"), 2) for i in range(3)] == [True, True, False]
    assert rows.pause("acme:0")
    assert not rows.put(row("acme:3"), 2)
    assert rows.remove("acme:0")
    assert rows.put(row("acme:3"), 2)


def test_one_whose_only_run_is_over_does_not_count_until_it_is_set_anew(store: Store) -> None:
    rows = store.schedules
    assert rows.put(row("acme:over", None), 1)
    assert rows.put(row("acme:1"), 1)
    assert not rows.put(row("acme:over"), 1)


def test_those_that_come_at_once_are_counted_one_after_another(store: Store) -> None:
    def put(number: int) -> bool:
        return store.schedules.put(row(f"acme:{number}"), 3)

    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(put, range(16)))
    assert sum(kept) == 3
    assert len(store.schedules.list(["acme:"], 20)) == 3
