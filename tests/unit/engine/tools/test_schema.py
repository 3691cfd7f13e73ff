"""What a model is told of a function, and what the function gets back."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
import threading
from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from brainq.engine.tools.context import RunContext
from brainq.engine.tools.schema import read_signature
from brainq.engine.tools.tool import make_tool
from brainq.errors import ToolSchemaError
from tests.support.stand_in import stand_in


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Filter(BaseModel):
    field: str
    title: str = "t"
    values: list[str] = []


def plain(path: str, limit: int = 10, deep: bool = False) -> str:
    """Find things.

    Looks everywhere.

    Args:
        path: where to look,
            from the root
        limit (int): how many at most
        other: not a parameter

    Returns:
        what was found
    """
    return path + str(limit) + str(deep)


def rich(
    colour: Colour,
    when: datetime.date,
    point: Point,
    filters: list[Filter],
    mode: Literal["a", "b"] = "a",
    note: Annotated[str | None, Field(description="said aloud", max_length=5)] = None,
) -> None: ...


def test_a_signature_becomes_a_schema() -> None:
    signature = read_signature("plain", plain)

    assert signature.description == "Find things.\n\nLooks everywhere."
    assert signature.schema == {
        "type": "object",
        "additionalProperties": False,
        "required": ["path"],
        "properties": {
            "path": {"type": "string", "description": "where to look, from the root"},
            "limit": {"type": "integer", "default": 10, "description": "how many at most"},
            "deep": {"type": "boolean", "default": False},
        },
    }


def test_rich_types_become_schemas_and_come_back() -> None:
    tool = make_tool(rich)
    properties = tool.spec.parameters["properties"]

    assert properties["mode"] == {"enum": ["a", "b"], "type": "string", "default": "a"}
    assert properties["note"]["description"] == "said aloud"
    assert set(tool.spec.parameters["$defs"]["Filter"]["properties"]) == {"field", "title", "values"}
    assert "Filter" not in json.dumps(tool.spec.parameters["$defs"]["Filter"]), "titles cost tokens"
    assert tool.keywords(
        {"colour": "blue", "when": "2024-02-29", "point": {"x": 1}, "filters": [{"field": "f", "values": ["v"]}]},
        stand_in(None),
    ) == {
        "colour": Colour.BLUE,
        "when": datetime.date(2024, 2, 29),
        "point": Point(1, 0),
        "filters": [Filter(field="f", values=["v"])],
    }


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    def nothing() -> None: ...

    schema = read_signature("nothing", nothing).schema
    assert schema == {"type": "object", "properties": {}, "additionalProperties": False}


def with_context(q: str, where: RunContext) -> None: ...
def with_optional_context(q: str, ctx: RunContext | None = None) -> None: ...
def with_marked_context(q: str, *, c: Annotated[RunContext, "mine"]) -> None: ...


@pytest.mark.parametrize(
    ("function", "name"),
    [(with_context, "where"), (with_optional_context, "ctx"), (with_marked_context, "c"), (plain, None)],
)
def test_the_context_parameter_is_hidden_whatever_its_name(function: Callable[..., Any], name: str | None) -> None:
    signature = read_signature("t", function)

    assert signature.context_param == name
    assert name not in signature.schema["properties"]


def odd_names(copy: int, json: str, model_config: int, _hidden: int = 0, schema: str = "s") -> None: ...


def test_parameters_may_have_names_that_models_use_for_themselves() -> None:
    tool = make_tool(odd_names)

    given = {"copy": 1, "json": "x", "model_config": 2, "_hidden": 3}
    assert list(tool.spec.parameters["properties"]) == ["copy", "json", "model_config", "_hidden", "schema"]
    assert tool.keywords(given, stand_in(None)) == given


def star_args(*names: str) -> None: ...
def star_kwargs(**names: str) -> None: ...
def positional(a: int, /) -> None: ...
def bare(a) -> None: ...  # type: ignore[no-untyped-def]  # pyright: ignore
def unresolved(a: NotImported) -> None: ...  # type: ignore[name-defined]  # noqa: F821  # pyright: ignore
def two_contexts(a: RunContext, b: RunContext) -> None: ...
def no_json(lock: threading.Event) -> None: ...
def callback(a: int, f: Callable[[], int]) -> None: ...


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (star_args, ["names", "*args", "list"]),
        (star_kwargs, ["names", "**kwargs", "dict"]),
        (positional, ["'a'", "remove the /"]),
        (bare, ["'a'", "annotation", "a: str"]),
        (unresolved, ["NotImported", "importable"]),
        (two_contexts, ["'a'", "'b'", "keep one"]),
        (no_json, ["lock", "pydantic model"]),
        (callback, ["JSON form", "pydantic model"]),
    ],
)
def test_a_refusal_names_the_tool_and_the_remedy(function: Callable[..., Any], words: list[str]) -> None:
    with pytest.raises(ToolSchemaError) as refused:
        read_signature("mytool", function)

    for word in ["'mytool'", *words]:
        assert word in str(refused.value)


def test_a_default_that_is_no_json_is_left_out_of_the_schema() -> None:
    marker = object()

    def odd(a: Any = marker) -> None: ...

    tool = make_tool(odd)
    assert "default" not in tool.spec.parameters["properties"]["a"]
    assert tool.keywords({}, stand_in(None)) == {}


def in_google_style(path: str, limit: int) -> None:
    """Find things.

    Looks everywhere.

    Args:
        path (str): Where to look,
            from the root.
        limit: How many.

    Raises:
        OSError: The disk is gone.
    """


def in_numpy_style(path: str, limit: int) -> None:
    """Find things.

    Looks everywhere.

    Parameters
    ----------
    path : str
        Where to look,
        from the root.
    limit
        How many.

    Returns
    -------
    None
    """


def in_sphinx_style(path: str, limit: int) -> None:
    """Find things.

    Looks everywhere.

    :param str path: Where to look,
        from the root.
    :param limit: How many.
    :raises OSError: The disk is gone.
    """


@pytest.mark.parametrize("function", [in_google_style, in_numpy_style, in_sphinx_style])
def test_docstrings_of_three_styles_describe_tool_and_parameters(function: Callable[..., Any]) -> None:
    signature = read_signature("find", function)
    assert signature.description == "Find things.\n\nLooks everywhere."
    properties = signature.schema["properties"]
    assert properties["path"]["description"] == "Where to look, from the root."
    assert properties["limit"]["description"] == "How many."


def test_one_entry_may_describe_two_parameters_and_what_is_no_docstring_is_a_text() -> None:
    def two(low: int, high: int) -> None:
        """Count.

        Parameters
        ----------
        low, high : int
            Both count.
        """

    def odd(x: int) -> None:
        """:param"""

    properties = read_signature("two", two).schema["properties"]
    assert [properties[name]["description"] for name in ("low", "high")] == ["Both count."] * 2
    assert read_signature("odd", odd).description == ":param"
