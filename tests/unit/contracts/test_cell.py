"""Cells: how they are written, which tenant is whose, and what an id says of its own."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.cell import birth_cell, hashed_cell, parse_cells, tenant_key, with_birth_cell
from brainq.contracts.ids import check_turn_id, is_background_turn, new_turn_id
from brainq.errors import InvalidInput

TWO = {
    "b": {"redis": "redis://:hunter2@h/0", "sql": "postgresql://u:hunter2@h/one"},
    "a": {"redis": "redis://h2/0", "sql": "postgresql://h/two", "broker": "amqp://h"},
}


def test_their_order_stands_and_no_password_is_shown() -> None:
    cells = parse_cells(json.dumps(TWO))
    assert [cell.name for cell in cells] == ["b", "a"]
    assert cells[0].redis_url.get_secret_value() == "redis://:hunter2@h/0"
    assert cells[1].broker_url is not None
    assert "hunter2" not in repr(cells) + str(cells)
    assert parse_cells(" ") == ()


@pytest.mark.parametrize(
    "text",
    [
        "/no/such/file.json",
        "[]",
        '{"A": {}}',
        '{"ch": {"redis": "redis://h", "sql": "sqlite:///x"}}',
        '{"averylongname": {"redis": "redis://h", "sql": "sqlite:///x"}}',
        '{"a": {"redis": "redis://hunter2"}}',
        '{"a": {"redis": "redis://h", "sql": "sqlite:///x", "hunter2": 1}}'.replace("hunter2", "queue"),
        '{"a": "redis://hunter2"}',
        '{"a": {"redis": "redis://h", "sql": "sqlite:///x"}, "a": {"redis": "redis://i", "sql": "sqlite:///y"}}',
        '{"a": {"redis": "redis://hunter2", "sql": "sqlite:///x"}, "b": {"redis": "redis://hunter2", "sql": "sqlite:///y"}}',
        '{"a": {"redis": "redis://h", "sql": "sqlite:///x"}, "b": {"redis": "redis://i", "sql": "sqlite:///x"}}',
    ],
)
def test_what_is_no_set_of_cells_is_refused_without_its_addresses(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_cells(text)
    assert refused.value.field.startswith("cells")
    assert "hunter2" not in str(refused.value)


def test_a_tenant_is_what_its_sessions_begin_with_and_else_the_session() -> None:
    assert [tenant_key(session) for session in ("acme:1", "acme:eu:7", "acme", "s-1")] == [
        "acme:",
        "acme:",
        "acme",
        "s-1",
    ]


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=6), min_size=20, max_size=60, unique=True))
def test_a_further_cell_takes_its_share_and_moves_nobody_elses(keys: list[str]) -> None:
    before = {key: hashed_cell(key, ("a", "b")) for key in keys}
    after = {key: hashed_cell(key, ("a", "b", "c")) for key in keys}
    assert all(after[key] in (before[key], "c") for key in keys)
    assert before == {key: hashed_cell(key, ("b", "a")) for key in keys}


def test_tenants_are_spread_evenly() -> None:
    counts = Counter(hashed_cell(f"tenant{number}:", ("a", "b", "c", "d")) for number in range(4_000))
    assert all(850 < count < 1_150 for count in counts.values())


def test_an_id_says_the_cell_it_was_made_in() -> None:
    names = ("a", "b2")
    made = with_birth_cell("b2", new_turn_id() + "-bg")
    assert check_turn_id("turn_id", made) == made
    assert birth_cell(made, names) == "b2"
    assert is_background_turn(made)
    for other in (new_turn_id(), "ch-0123", "in-0123", "c-1", "b2", "b3-x"):
        assert birth_cell(other, names) is None
    assert with_birth_cell("", "t-1") == "t-1"
