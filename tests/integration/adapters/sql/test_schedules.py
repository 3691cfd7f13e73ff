"""Schedules: how many of one tenant have a run to come."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from brainq.adapters.sql.store import Store
from tests.integration.adapters.sql.examples import schedule


def test_a_tenant_has_no_more_than_it_may(store: Store) -> None:
    rows = store.schedules
    assert [rows.put(schedule(f"acme:{i}"), 0, 2) for i in range(3)] == [True, True, False]
    assert rows.get("acme:2") is None
    assert rows.put(schedule("acme:1", 7_000), 0, 2)  # set anew
    assert rows.put(schedule("acme2:1"), 0, 2)
    assert [rows.put(schedule(f"plain{i}"), 0, 2) for i in range(3)] == [True, True, False]
    assert rows.pause("acme:0", 0)
    assert not rows.put(schedule("acme:3"), 0, 2)
    assert rows.remove("acme:0")
    assert rows.put(schedule("acme:3"), 0, 2)


def test_one_whose_only_run_is_over_does_not_count_until_it_is_set_anew(store: Store) -> None:
    rows = store.schedules
    assert rows.put(schedule("acme:over", None), 0, 1)
    assert rows.put(schedule("acme:1"), 0, 1)
    assert not rows.put(schedule("acme:over"), 0, 1)


def test_those_that_come_at_once_are_counted_one_after_another(store: Store) -> None:
    def put(number: int) -> bool:
        return store.schedules.put(schedule(f"acme:{number}"), 0, 3)

    with ThreadPoolExecutor(8) as threads:
        kept = list(threads.map(put, range(16)))
    assert sum(kept) == 3
    assert len(store.schedules.list(["acme:"], 20)) == 3


@pytest.mark.parametrize("changed", [{"timing": "every 60"}, {"zone": "Asia/Tokyo"}, {"start_ms": 9_000}])
def test_a_runner_that_read_the_former_timing_does_not_move_a_schedule_on_by_it(
    store: Store, changed: dict[str, Any]
) -> None:
    rows = store.schedules
    assert rows.put(read := schedule("acme:1", 5_000), 0)
    assert rows.put(again := read.model_copy(update={"next_ms": 9_000} | changed), 6_000)
    assert not rows.move(read, 7_000, turn_id="turn-1", note="begun")
    assert rows.get("acme:1") == again.model_copy(
        update={"next_ms": 5_000}
    )  # it is due still, and its turn begins once
    assert rows.move(again.model_copy(update={"next_ms": 5_000}), 9_000)


def test_the_due_instant_of_a_schedule_that_is_set_again_is_kept_and_a_later_one_is_replaced(store: Store) -> None:
    rows = store.schedules
    daily = schedule("acme:1", 5_000).model_copy(update={"timing": "every 60", "note": "missed: some"})
    for now_ms in (4_000, 6_000):  # before and after it is due
        rows.put(daily, now_ms)
        same = daily.model_copy(update={"start_ms": 8_000, "next_ms": 8_000, "note": "", "session_id": f"s{now_ms}"})
        assert rows.put(same, now_ms)
        assert rows.get("acme:1") == daily.model_copy(update={"session_id": f"s{now_ms}"})
    other = daily.model_copy(update={"timing": "every 90", "start_ms": 9_000, "next_ms": 9_000, "note": ""})
    assert rows.put(other, 4_999)
    assert rows.get("acme:1") == other
    assert rows.put(daily.model_copy(update={"note": ""}), 9_000)
    kept = rows.get("acme:1")
    assert kept is not None
    assert (kept.timing, kept.start_ms, kept.next_ms, kept.note) == ("every 60", 5_000, 9_000, "")


def test_an_instant_that_was_due_before_the_pause_survives_it(store: Store) -> None:
    rows = store.schedules
    for name, now_ms in (("due", 5_000), ("early", 4_999)):
        rows.put(schedule(name), 0)
        assert rows.pause(name, now_ms)
        assert not rows.pause(name, now_ms)
        assert name not in [row.name for row in rows.due(9_000, 5)]
        assert rows.resume(name, 8_000, "left out")
        assert not rows.resume(name, 7_000, "")
    assert [(row.name, row.next_ms, row.note) for row in rows.list(["*"], 5)] == [
        ("due", 5_000, ""),
        ("early", 8_000, "left out"),
    ]
