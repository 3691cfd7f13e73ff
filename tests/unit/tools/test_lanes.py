"""Which lanes a call needs."""

from __future__ import annotations

from typing import Any

import pytest

from brainq.contracts.effect import Effect
from brainq.contracts.tool import ToolSpec
from brainq.errors import InvalidInput
from brainq.tools.lanes import MAX_KEY_CHARS, lanes_of, resource_keys_of

SCHEMA = {"type": "object", "properties": {"path": {}, "to": {"default": "home"}, "n": {}}}


def spec(effect: Effect, *resources: str) -> ToolSpec:
    return ToolSpec(name="t", parameters=SCHEMA, effect=effect, resources=resources)


@pytest.mark.parametrize(
    ("resources", "arguments", "lanes"),
    [
        ((), {"path": "a"}, ("session:s1",)),
        (("note:{path}",), {"path": "a b"}, ("note:a b",)),
        (("note:{path}", "note:{to}"), {"path": "z", "to": "b"}, ("note:b", "note:z")),
        (("note:{path}", "note:{to}"), {"path": "b", "to": "b"}, ("note:b",)),
        (("note:{to}",), {}, ("note:home",)),
        (("global",), {}, ("global",)),
        (("{n}:{n}",), {"n": 3}, ("3:3",)),
        (("x:{n}",), {"n": {"b": 1, "a": 2}}, ('x:{"a":2,"b":1}',)),
        (("a{{b}}",), {}, ("a{b}",)),
        (("note:{path}",), {"path": "{to}"}, ("note:{to}",)),
    ],
)
def test_lanes_of_a_write(
    resources: tuple[str, ...], arguments: dict[str, Any], lanes: tuple[str, ...]
) -> None:
    assert lanes_of(spec(Effect.LOCAL_WRITE, *resources), arguments, "s1") == lanes


def test_a_read_has_resource_keys_but_no_lanes() -> None:
    read = spec(Effect.READ_ONLY, "note:{path}")

    assert lanes_of(read, {"path": "a"}, "s1") == ()
    assert resource_keys_of(read, {"path": "a"}) == ("note:a",)
    assert resource_keys_of(spec(Effect.READ_ONLY), {}) == ()


def test_a_missing_argument_is_named_with_tool_and_template() -> None:
    with pytest.raises(InvalidInput) as refused:
        lanes_of(spec(Effect.NETWORK, "note:{path}"), {}, "s1")

    assert refused.value.field == "path"
    assert "'t'" in str(refused.value)
    assert "note:{path}" in str(refused.value)


def test_long_keys_are_cut_and_stay_apart() -> None:
    write = spec(Effect.NETWORK, "note:{path}")
    first, second = (lanes_of(write, {"path": "x" * 5000 + end}, "s")[0] for end in "ab")

    assert first != second
    assert len(first) == len(second) == MAX_KEY_CHARS
