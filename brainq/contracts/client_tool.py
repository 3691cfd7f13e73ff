"""Tools that the caller of a turn runs itself: the model asks for them, and the turn waits for their results."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import Field, field_validator

from brainq.contracts.base import Wire
from brainq.contracts.plain_json import check_json
from brainq.errors import InvalidInput

DEFAULT_CLIENT_S = 86_400.0
MAX_CLIENT_S = 31_536_000.0  # a year
MAX_CLIENT_TOOLS = 128
MAX_DESCRIPTION_CHARS = 20_000
MAX_CLIENT_TOOLS_CHARS = 400_000  # of all schemas and descriptions: each step sends them
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


class ClientTool(Wire):
    """A function that the caller runs itself.

    parameters   the JSON schema (of an object) of its arguments; left out: it takes none
    timeout_s    how long a call of it waits for its result; it has timed out then. The turn's time limit stands still
                 meanwhile
    """

    name: str
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    timeout_s: float = Field(default=DEFAULT_CLIENT_S, gt=0, le=MAX_CLIENT_S, allow_inf_nan=False)

    @field_validator("name")
    @classmethod
    def _callable(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise InvalidInput(
                "client_tools",
                f"{value[:60]!r} is no name that a model can call; use 1 to 64 of A-Z a-z 0-9 _ -, starting with a "
                "letter or _",
            )
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _plain_json(cls, value: object) -> object:
        return check_json("client_tools", value)


def check_client_tools(tools: tuple[ClientTool, ...]) -> None:
    """Raises InvalidInput for too many of them, too much, or a name that two have."""
    if len(tools) > MAX_CLIENT_TOOLS:
        raise InvalidInput("client_tools", f"there are {len(tools)}; send at most {MAX_CLIENT_TOOLS}")
    names = [tool.name for tool in tools]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput("client_tools", f"two of them are named {twice[0]!r}; give one another name")
    size = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)
    if size > MAX_CLIENT_TOOLS_CHARS:
        raise InvalidInput(
            "client_tools",
            f"they are {size:,} characters of descriptions and schemas; send at most {MAX_CLIENT_TOOLS_CHARS:,}",
        )
