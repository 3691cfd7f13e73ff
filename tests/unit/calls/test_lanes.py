"""Calls enter their queues once they hold their lanes, and not while a hold stands."""

from __future__ import annotations

import sys

import pytest

from brainq.calls.lanes import LaneKeeper
from brainq.contracts.claim import CallRef, SettleReply
from tests.unit.calls.fakes import REF, Calls, Lanes


@pytest.fixture
def log() -> list[str]:
    return []


@pytest.fixture
def calls(log: list[str]) -> Calls:
    return Calls(log)


@pytest.fixture
def lanes(log: list[str]) -> Lanes:
    return Lanes(log)


def other(index: int) -> CallRef:
    return CallRef(REF.session_id, REF.turn_id, f"c1-{index}")


def test_a_call_waits_for_its_lanes(calls: Calls, lanes: Lanes, log: list[str]) -> None:
    calls.lanes[REF.call_id] = ("busy",)
    lanes.busy.add("busy")
    LaneKeeper(calls, lanes).enter(REF)
    assert log == ["take c1-0"]


def test_a_settled_call_lets_the_next_one_go(calls: Calls, lanes: Lanes, log: list[str]) -> None:
    calls.replies["c1-1"] = SettleReply("SETTLED", "cancelled")
    lanes.granted = {"c1-0": [other(1)], "c1-1": [other(2)]}
    LaneKeeper(calls, lanes).leave(REF)
    assert log == ["free c1-0", "dispatch c1-1", "free c1-1", "dispatch c1-2"]


def test_a_held_call_keeps_its_place_in_nobody_s_way(calls: Calls, lanes: Lanes, log: list[str]) -> None:
    calls.lanes[REF.call_id] = ("mine",)
    calls.replies[REF.call_id] = SettleReply("HELD")
    LaneKeeper(calls, lanes).enter(REF)
    assert log == ["take c1-0", "dispatch c1-0", "lapse c1-0"]


def test_a_hold_that_denies_call_after_call_is_no_deep_recursion(
    calls: Calls, lanes: Lanes, log: list[str]
) -> None:
    most = sys.getrecursionlimit() * 2
    for index in range(most):
        calls.replies[f"c1-{index}"] = SettleReply("HELD", wants=(f"c1-{index + 1}",))
    LaneKeeper(calls, lanes).enter(REF)
    assert log[-1] == f"dispatch c1-{most}"
    assert log.count("lapse c1-7") == 1
