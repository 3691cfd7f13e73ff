"""Which lanes a call needs."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.engine.tools.lanes import MAX_KEY_CHARS, lanes_of, resource_keys, shared_templates
from brainq.engine.tools.tool import make_tool
from brainq.errors import InvalidInput, ToolSchemaError

SCHEMA = {"type": "object", "properties": {"path": {}, "to": {"default": "home"}, "n": {}}}


class Item(BaseModel):
    sku: str
    shelf: int = 7


class Order(BaseModel):
    item: Item | None = None
    note: str = "none"
    lines: list[Item] = []


def place(order: Order, urgent: bool = False, reply_to: Order = Order(item=Item(sku="x"))) -> None:  # noqa: B008
    """Place it."""


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
        (("cart:{session}", "{path}"), {"path": "a"}, ("a", "cart:s1")),
        (("a{{b}}",), {}, ("a{b}",)),
        (("note:{path}",), {"path": "{to}"}, ("note:{to}",)),
    ],
)
def test_lanes_of_a_write(resources: tuple[str, ...], arguments: dict[str, Any], lanes: tuple[str, ...]) -> None:
    assert lanes_of(spec(Effect.LOCAL_WRITE, *resources), arguments, "s1") == lanes


def test_a_read_has_resource_keys_but_no_lanes() -> None:
    read = spec(Effect.READ_ONLY, "note:{path}")

    assert lanes_of(read, {"path": "a"}, "s1") == ()
    assert resource_keys(read, {"path": "a"}, "s1") == ("note:a",)
    assert resource_keys(spec(Effect.READ_ONLY), {}, "s1") == ()


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


@pytest.mark.parametrize(
    ("template", "arguments", "lane"),
    [
        ("item:{order.item.sku}", {"order": {"item": {"sku": "tea"}}}, "item:tea"),
        ("shelf:{order.item.shelf}", {"order": {"item": {"sku": "tea"}}}, "shelf:7"),
        ("shelf:{order.item.shelf}", {"order": {"item": {"sku": "tea", "shelf": 2}}}, "shelf:2"),
        ("{order.note}/{urgent}", {"order": {}}, "none/False"),
        ("{reply_to.item.sku}", {"order": {}}, "x"),
    ],
)
def test_a_template_reaches_into_a_pydantic_argument(template: str, arguments: dict[str, Any], lane: str) -> None:
    tool = make_tool(place, effect=Effect.LOCAL_WRITE, resources=(template,))
    assert lanes_of(tool.spec, arguments, "s1") == (lane,)


@pytest.mark.parametrize("arguments", [{"order": {}}, {"order": {"item": None}}])
def test_what_a_template_reaches_for_and_is_not_there_denies_the_call(arguments: dict[str, Any]) -> None:
    tool = make_tool(place, effect=Effect.LOCAL_WRITE, resources=("item:{order.item.sku}",))
    with pytest.raises(InvalidInput, match=r"order\.item\.sku"):
        lanes_of(tool.spec, arguments, "s1")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{order}", "an object or a list"),
        ("{order.item}", "an object or a list"),
        ("{order.lines}", "an object or a list"),
        ("{order.nope}", "not a parameter, nor in one"),
        ("{order.item.sku.x}", "not a parameter, nor in one"),
        ("{order[item]}", "not a parameter, nor in one"),
    ],
)
def test_a_template_never_puts_a_whole_object_into_a_lanes_name(template: str, why: str) -> None:
    with pytest.raises(ToolSchemaError, match=why):
        make_tool(place, effect=Effect.LOCAL_WRITE, resources=(template,))


def test_a_value_that_turns_out_to_be_an_object_denies_the_call() -> None:
    with pytest.raises(InvalidInput, match="plain value"):
        lanes_of(spec(Effect.NETWORK, "x:{n}"), {"n": {"b": 1}}, "s1")


def test_a_parameter_called_session_is_that_parameter() -> None:
    def move(session: str) -> None: ...

    tool = make_tool(move, resources=("{session}",))
    assert lanes_of(tool.spec, {"session": "mine"}, "s1") == ("mine",)


@pytest.mark.parametrize(
    ("resources", "shared"),
    [
        ((), ()),
        (("cart:{session}",), ()),
        (("global",), ("global",)),
        (("cart:{session}", "note:{path}", "mcp:memory"), ("note:{path}", "mcp:memory")),
        (("{path}:{session}",), ()),
    ],
)
def test_lanes_that_tenants_may_share_are_those_without_the_session(
    resources: tuple[str, ...], shared: tuple[str, ...]
) -> None:
    assert shared_templates(spec(Effect.DESTRUCTIVE, *resources)) == shared
    assert shared_templates(spec(Effect.READ_ONLY, *resources)) == ()


def test_a_parameter_named_session_is_not_the_session() -> None:
    named = ToolSpec(name="t", parameters={"type": "object", "properties": {"session": {}}}, resources=("{session}",))
    assert shared_templates(named) == ("{session}",)
