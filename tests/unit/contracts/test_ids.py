"""Ids of calls: unique in a turn, and over all turns."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq import InvalidInput, full_call_id, split_call_id
from brainq.contracts.ids import call_id, child_turn_id, new_turn_id, parse_call_id
from brainq.engine.people.bounced_inputs import bounced_turn_id

turn_ids = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9_-]{2,63}\Z")
nested = turn_ids.flatmap(lambda turn: st.just(turn) | st.just(full_call_id(turn[:50], "c1-0")))
call_ids = st.builds(call_id, st.integers(0, 10_000), st.integers(0, 127))


@given(nested, call_ids)
def test_a_full_call_id_is_taken_apart_again(turn: str, call: str) -> None:
    full = full_call_id(turn, call)
    assert split_call_id(full) == (turn, call)
    assert split_call_id(f"{turn}.{call}") == (turn, call)
    assert re.fullmatch(r"[A-Za-z0-9_-]+", full)
    assert len(full) <= 64 or len(turn) > 53


@given(nested, call_ids, nested, call_ids)
def test_two_calls_never_share_one(turn: str, call: str, other_turn: str, other_call: str) -> None:
    is_one = full_call_id(turn, call) == full_call_id(other_turn, other_call)
    assert is_one == ((turn, call) == (other_turn, other_call))


@pytest.mark.parametrize(
    "turn",
    [new_turn_id(), child_turn_id("t", "c1-0"), bounced_turn_id("s", "m")],
    ids=["submitted", "child", "bounced"],
)
def test_those_of_turns_that_brainq_named_are_short(turn: str) -> None:
    assert len(full_call_id(turn, call_id(10_000, 127))) <= 40


@pytest.mark.parametrize("wrong", ["", "c1-0", "-c1-0", "turn-1", "turn-1-c1", "turn-1-c1-0-1", "t-c1-0\n", 7, None])
def test_what_names_no_call_is_refused(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="TURN-CALL"):
        split_call_id(wrong)


def test_a_calls_place_is_in_its_id() -> None:
    ids = [call_id(step, index) for step in (0, 2, 10) for index in (0, 9, 10)]
    assert sorted(ids, key=parse_call_id) == ids
    with pytest.raises(ValueError, match="c1"):
        parse_call_id("c1")
