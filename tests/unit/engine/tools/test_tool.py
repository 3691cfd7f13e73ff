"""What may become a tool, and the registry of them."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest
from pydantic import Field

from brainq import Brain
from brainq.contracts.status import Effect
from brainq.contracts.tool import ToolSpec
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.results import RefusedArguments
from brainq.engine.tools.tool import Tool, ToolRegistry, make_tool
from brainq.errors import InvalidInput, ToolSchemaError
from tests.support.stand_in import stand_in


def write(path: str, text: str, ctx: RunContext) -> None:
    """Write a note."""


async def fetch(url: str) -> str:
    return url


def items() -> Iterator[int]:
    yield 1


async def async_items() -> AsyncIterator[int]:
    yield 1


class Box:
    def open(self, key: str) -> str:
        """Open it."""
        return key

    def __call__(self, key: str) -> str:
        return key


def over(limit: int, arguments: dict[str, Any]) -> bool:
    return arguments["amount"] > limit


def test_an_unmarked_tool_counts_as_destructive() -> None:
    tool = make_tool(write)

    assert tool.spec.effect is Effect.DESTRUCTIVE
    assert (tool.name, tool.spec.description, tool.context_param) == ("write", "Write a note.", "ctx")
    assert not tool.is_async
    assert tool.spec.timeout_s == 45.0


def test_a_lane_is_one_more_resource() -> None:
    tool = make_tool(write, resources=("note:{path}", "disk"), lane="global")
    assert tool.spec.resources == ("note:{path}", "disk", "global")


def test_async_functions_and_bound_methods_are_tools() -> None:
    assert make_tool(fetch).is_async
    assert list(make_tool(Box().open).spec.parameters["properties"]) == ["key"]


def test_a_schema_from_elsewhere_is_taken_as_it_is() -> None:
    def call(**arguments: Any) -> Any:
        return arguments

    schema = {"type": "object", "properties": {"weird-name": {"type": "string"}}}
    tool = make_tool(call, name="remote", description="Far away.", parameters=schema)

    assert tool.spec.parameters == schema
    assert tool.keywords({"weird-name": "x"}, stand_in(None)) == {"weird-name": "x"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"effect": "read_only"}, ["effect='read_only'", "Effect.READ_ONLY"]),
        ({"timeout_s": 0}, ["timeout_s=0", "above 0"]),
        ({"timeout_s": -1.5}, ["timeout_s=-1.5"]),
        ({"timeout_s": float("nan")}, ["timeout_s=nan", "finite"]),
        ({"timeout_s": float("inf")}, ["timeout_s=inf", "finite"]),
        ({"timeout_s": "5"}, ["timeout_s='5'", "number"]),
        ({"timeout_s": True}, ["timeout_s=True", "number"]),
        ({"isolation": "fork"}, ["isolation='fork'", "thread, process"]),
        ({"resources": ("note:{nope}",)}, ["note:{nope}", "path, text"]),
        ({"resources": ("note:{ctx}",)}, ["{ctx}"]),
        ({"resources": ("note:{path!r}",)}, ["{path}"]),
        ({"resources": ("note:{path:>9}",)}, ["plain names"]),
        ({"resources": ("note:{path.x}",)}, ["path.x"]),
        ({"resources": ("note:{}",)}, ["plain names"]),
        ({"resources": ("note:{path",)}, ["cannot be read"]),
        ({"resources": ("",)}, ["''"]),
        ({"resources": "note:{path}"}, ["tuple"]),
        ({"lane": "x{nope}"}, ["{nope}"]),
        ({"name": "two words"}, ["two words", "A-Z"]),
        ({"name": "x" * 65}, ["64"]),
        ({"lane_scope": "fleet"}, ["lane_scope='fleet'", "'cell'"]),
        ({"approval": ""}, ["approval=''", "or True"]),
        ({"approval": " "}, ["approval=' '"]),
        ({"approval": "x" * 501}, ["500"]),
        ({"approval": 1}, ["approval=1", "a function of the arguments"]),
        ({"approval": Box}, ["approval=", "a function"]),
        ({"approval": async_items}, ["approval= is an async generator"]),
        ({"approval": functools.partial(fetch, "x")}, ["approval=", "one dict"]),
        ({"approval": lambda: True}, ["approval=", "def needs(arguments: dict)"]),
        ({"approval": write}, ["approval=", "one dict"]),
    ],
)
def test_bad_options_are_refused_with_the_remedy(options: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(ToolSchemaError) as refused:
        make_tool(write, **options)

    for word in [*words, options.get("name", "'write'")]:
        assert word in str(refused.value)


@pytest.mark.parametrize("rule", [None, True, False, "it moves money", functools.partial(over, 3), Box().open, len])
def test_a_tool_keeps_its_approval_rule(rule: Any) -> None:
    approval: Any = make_tool(write, approval=rule).approval
    assert getattr(approval, "__wrapped__", approval) is rule


@pytest.mark.parametrize("thing", [items, async_items, Box(), functools.partial(write, "p"), Box, len])
def test_what_is_no_plain_or_async_function_is_refused(thing: Any) -> None:
    with pytest.raises(ToolSchemaError, match=r"def|list|name"):
        make_tool(thing)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ToolSchemaError, match="name="):
        make_tool(lambda: None)


def test_two_tools_of_one_name_are_refused() -> None:
    tools = ToolRegistry([make_tool(write), make_tool(fetch)])

    with pytest.raises(InvalidInput, match="'fetch'"):
        tools.add(make_tool(write, name="fetch"))

    assert list(tools) == ["write", "fetch"]
    assert tools.specs["write"] is tools["write"].spec


OBJECT: dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "dict"}, ["'dict'", "an object"]),
        ({"type": "object", "properties": {"path": {"type": "dict"}}}, ["'dict' is not valid", "$.properties.path"]),
        ({"type": "object", "required": "path"}, ["'path' is not", "$.required"]),
        ({"type": "array"}, ["'array'", "an object"]),
        ({"properties": {"path": {"pattern": "("}}}, ["$.properties.path.pattern"]),
        ({"properties": {"path": {"$ref": "#/$defs/Path"}}}, ["'#/$defs/Path'", "$defs"]),
        ({"properties": {"path": {"$ref": "https://example.org/path.json"}}}, ["https://example.org/path.json"]),
        ({"properties": {"path": {"default": object()}}}, ["must be JSON"]),
        ([], ["a dict", "list"]),
    ],
)
def test_a_schema_that_nothing_can_be_held_to_is_refused(schema: Any, words: list[str]) -> None:
    def call(path: str) -> None: ...

    with pytest.raises(ToolSchemaError) as refused:
        make_tool(call, name="remote", parameters=schema)
    for word in ["'remote'", *words]:
        assert word in str(refused.value)
    by_hand = Tool(ToolSpec.model_construct(name="remote", parameters=schema), call, is_async=False)
    with pytest.raises(ToolSchemaError, match="'remote'"):
        ToolRegistry([by_hand])


def test_a_pattern_of_a_signature_is_json_schemas() -> None:
    def good(path: Annotated[str, Field(pattern=r"^(?P<top>/)\w+$")]) -> None: ...

    def bad(path: Annotated[str, Field(pattern=r"^.{1,5000}$")]) -> None: ...

    assert make_tool(good).spec.parameters["properties"]["path"]["pattern"] == r"^(?P<top>/)\w+$"
    with pytest.raises(ToolSchemaError, match=r"'bad'.*syntax of ECMA 262.*\$\.properties\.path\.pattern"):
        make_tool(bad)


def test_a_schema_that_refers_to_its_own_parts_is_taken() -> None:
    def call(path: str) -> None: ...

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"path": {"$ref": "#/$defs/Path"}, "$ref": {"type": "string"}},
        "$defs": {"Path": {"type": "string", "examples": [{"$ref": "nowhere"}]}},
    }
    with pytest.raises(ToolSchemaError, match="no parameter for '\\$ref'"):
        make_tool(call, parameters=schema)
    del schema["properties"]["$ref"]
    assert make_tool(call, parameters=schema).spec.parameters == schema


def test_a_property_with_the_name_of_the_contexts_parameter_is_refused() -> None:
    def call(path: RunContext, **arguments: Any) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"'path'.*RunContext.*rename"):
        make_tool(call, parameters=OBJECT)


def test_an_argument_with_the_name_of_the_contexts_parameter_is_never_overwritten() -> None:
    def call(ctx: RunContext, **arguments: Any) -> None: ...

    tool = make_tool(call, parameters=OBJECT)  # it lets further properties through
    context = RunContext(session_id="s", turn_id="t", call_id="c1-0", token=DeadlineToken(1.0))
    assert tool.keywords({"path": "x"}, context) == {"path": "x", "ctx": context}
    with pytest.raises(RefusedArguments, match="'ctx'"):
        tool.keywords({"path": "x", "ctx": "mine"}, context)


def test_a_function_that_cannot_take_what_the_schema_lets_through_is_refused() -> None:
    def takes_less() -> None: ...

    def needs_more(path: str, text: str) -> None: ...

    with pytest.raises(ToolSchemaError, match=r"no parameter for 'path'.*\*\*arguments"):
        make_tool(takes_less, parameters=OBJECT)
    with pytest.raises(ToolSchemaError, match="no property for 'text'"):
        make_tool(needs_more, parameters=OBJECT)


@pytest.mark.parametrize(
    ("option", "meant"), [("timeout", "timeout_s="), ("effects", "effect="), ("xyz", "the options")]
)
def test_an_option_that_does_not_exist_names_the_one_that_was_meant(option: str, meant: str) -> None:
    options: dict[str, Any] = {option: 3}
    with pytest.raises(ToolSchemaError, match=f"tool 'noted': it takes no option {option}=; .*{meant}"):

        @Brain("b", "openai:x").tool(**options)
        def noted() -> None: ...  # pyright: ignore[reportUnusedFunction]


def test_an_effect_that_does_not_exist_names_those_that_do() -> None:
    with pytest.raises(AttributeError, match=r"Effect has no 'WRITE'; use one of Effect\.READ_ONLY,"):
        Effect.WRITE  # noqa: B018  # pyright: ignore[reportUnusedExpression]
    assert not hasattr(Effect, "__wrapped__")
    assert Effect("network") is Effect.NETWORK
