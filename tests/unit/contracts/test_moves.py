"""The tables of moves: every state can be reached, and from every state there is an end."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TypeVar

import pytest

from brainq.contracts.status import FINAL_TURN_STATES, SETTLED, TRACE_MOVES, TURN_MOVES, TraceStatus, TurnState

S = TypeVar("S", bound=StrEnum)


def reached(moves: Mapping[S, frozenset[S]], start: S) -> set[S]:
    found, ahead = {start}, [start]
    while ahead:
        for state in moves[ahead.pop()] - found:
            found.add(state)
            ahead.append(state)
    return found


def test_every_state_is_in_its_table() -> None:
    assert set(TURN_MOVES) == set(TurnState)
    assert set(TRACE_MOVES) == set(TraceStatus)


def test_every_state_is_reached_from_the_first() -> None:
    assert reached(TURN_MOVES, TurnState.QUEUED) == set(TurnState)
    assert reached(TRACE_MOVES, TraceStatus.PLANNED) == set(TraceStatus)


@pytest.mark.parametrize("state", TurnState)
def test_every_turn_can_end(state: TurnState) -> None:
    assert reached(TURN_MOVES, state) & FINAL_TURN_STATES


@pytest.mark.parametrize("status", TraceStatus)
def test_every_call_can_be_settled(status: TraceStatus) -> None:
    assert reached(TRACE_MOVES, status) & SETTLED


@pytest.mark.parametrize("state", FINAL_TURN_STATES)
def test_an_ending_is_final(state: TurnState) -> None:
    assert TURN_MOVES[state] == frozenset()


def test_a_settled_call_moves_only_from_timed_out_to_late() -> None:
    moves = {(status, move) for status in SETTLED for move in TRACE_MOVES[status]}
    assert moves == {(TraceStatus.TIMED_OUT, TraceStatus.TIMED_OUT_LATE)}


def test_every_ending_goes_through_the_finalizer() -> None:
    before = {state for state, moves in TURN_MOVES.items() if moves & FINAL_TURN_STATES}
    assert before == {TurnState.CLOSING}
