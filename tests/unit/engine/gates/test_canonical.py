"""Equal arguments have one text and one fingerprint."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.engine.gates.canonical import canonical_json, fingerprint
from tests.support.hashes import args_hash

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.text(), values, max_size=5)


def shuffled(value: Any, draw: random.Random) -> Any:
    """The same value, its keys in another order and its whole numbers in another type."""
    match value:
        case dict():
            items = [(key, shuffled(item, draw)) for key, item in value.items()]
            draw.shuffle(items)
            return dict(items)
        case list():
            return [shuffled(item, draw) for item in value]
        case bool():
            return value
        case int() if abs(value) < 2**53:
            return float(value)
        case float() if value.is_integer():
            return int(value)
        case _:
            return value


@given(objects, st.randoms(use_true_random=False))
def test_key_order_and_number_type_do_not_matter(arguments: dict[str, Any], draw: random.Random) -> None:
    other = shuffled(arguments, draw)

    assert canonical_json(other) == canonical_json(arguments)
    assert fingerprint("t", other) == fingerprint("t", arguments)
    assert args_hash(other) == args_hash(arguments)


@given(objects)
def test_canonical_json_says_the_same_and_stays(arguments: dict[str, Any]) -> None:
    text = canonical_json(arguments)

    assert json.loads(text) == arguments
    assert canonical_json(json.loads(text)) == text


@given(objects, objects)
def test_different_arguments_have_different_fingerprints(one: dict[str, Any], two: dict[str, Any]) -> None:
    same = canonical_json(one) == canonical_json(two)
    assert (fingerprint("t", one) == fingerprint("t", two)) is same


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"a": 1}, {"a": True}),
        ({"a": 0}, {"a": None}),
        ({"a": "1"}, {"a": 1}),
        ({}, {"a": None}),
        ({"a": []}, {"a": {}}),
    ],
)
def test_what_only_looks_alike_differs(one: dict[str, Any], two: dict[str, Any]) -> None:
    assert args_hash(one) != args_hash(two)


def test_the_text_and_the_hashes_are_fixed() -> None:
    # Fingerprints are compared with those of earlier workers: a change here is a change of format.
    arguments = {"b": [1.0, 2.5, -0.0, "\u00e9\ud800"], "a": {"y": 1e16, "x": None}}

    assert canonical_json(arguments) == ('{"a":{"x":null,"y":10000000000000000},"b":[1,2.5,0,"\\u00e9\\ud800"]}')
    assert args_hash({"a": 1}) == "015abd7f5cc57a2dd94b7590f04ad808"
    assert len(fingerprint("t", {})) == 32
    assert fingerprint("t", {}) != fingerprint("u", {})


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_what_is_no_json_is_refused(bad: float) -> None:
    with pytest.raises(ValueError):
        canonical_json({"a": bad})
