"""metrics_flush.lua: what a process counted is added once, and to no more cells than there may be."""

from __future__ import annotations

from typing import Any, cast

from tests.lua.rig import Rig

DAY_MS = 86_400_000


def flush(rig: Rig, number: int, *deltas: str, process: str = "p1", most: int = 100) -> Any:
    return rig.run(
        "metrics_flush",
        flushed=rig.keys.flushed(process),
        number=number,
        dropped="dropped",
        keep_ms=30 * DAY_MS,
        remember_ms=DAY_MS,
        most=most,
        deltas=list(deltas),
    )


def counted(rig: Rig) -> dict[str, float]:
    found = cast("dict[str, str]", rig.client.hgetall(rig.keys.metrics))
    return {cell: float(value) for cell, value in found.items()}


def test_a_batch_is_added_once_however_often_it_comes(rig: Rig) -> None:
    assert flush(rig, 1, "turns", "2", "cost", "0.25") == ["ADDED"]  # which the rig runs three times
    assert flush(rig, 1, "turns", "2", "cost", "0.25") == ["ALREADY"]
    assert flush(rig, 2, "turns", "1") == ["ADDED"]
    assert flush(rig, 1, "turns", "2") == ["ALREADY"]
    assert flush(rig, 1, "turns", "4", process="p2") == ["ADDED"]
    assert counted(rig) == {"turns": 7, "cost": 0.25}


def test_both_keys_have_a_lifetime(rig: Rig) -> None:
    flush(rig, 1, "turns", "1")
    assert 29 * DAY_MS < cast(int, rig.client.pttl(rig.keys.metrics)) <= 30 * DAY_MS
    assert DAY_MS / 2 < cast(int, rig.client.pttl(rig.keys.flushed("p1"))) <= DAY_MS


def test_cells_beyond_the_most_are_left_out_and_counted(rig: Rig) -> None:
    flush(rig, 1, "a", "1", "b", "1", most=3)
    assert flush(rig, 2, "a", "1", "c", "1", "d", "1", "e", "1", most=3) == ["ADDED"]
    assert counted(rig) == {"a": 2, "b": 1, "c": 1, "dropped": 2}
    flush(rig, 3, "b", "1", "f", "1", most=3)
    assert counted(rig) == {"a": 2, "b": 2, "c": 1, "dropped": 3}
