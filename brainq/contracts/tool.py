"""Tools, for the model and the scheduler: a brain's own, and those that the caller of a turn runs."""

from __future__ import annotations

import json
import re
from functools import cached_property
from typing import Any, Literal

from pydantic import Field, field_validator

from brainq.contracts.base import Wire, check_json
from brainq.contracts.status import Effect
from brainq.errors import InvalidInput

Isolation = Literal["thread", "process"]
"""Where a tool's function runs: in a thread of the worker, or in a child process of it."""
DEFAULT_CLIENT_TOOL_TIMEOUT_S = 86_400.0
MAX_CLIENT_TOOL_TIMEOUT_S = 31_536_000.0  # a year
MAX_CLIENT_TOOLS = 128
MAX_DESCRIPTION_CHARS = 20_000
MAX_CLIENT_TOOLS_CHARS = 400_000  # of all schemas and descriptions, because each step sends them
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}", re.ASCII)


class ToolSpec(Wire):
    """A tool for the model and the scheduler.

    parameters: the JSON schema (of an object) of the arguments.
    timeout_s: the longest time of one call, counted from when its function starts.
    idempotent: True if a rescue may run a started call again, with the same idempotency key.
    resources: templates such as `note:{path}`, `item:{order.sku}` or `cart:{session}`, filled from the call. They name
        lanes (non-read calls), or keep two reads out of one wave (READ_ONLY calls).
    deny_repeats: True denies a repeated call after it brought a result, if no change was made since. This always
        applies to READ_ONLY and idempotent tools.
    isolation: `thread` abandons a function that misses its deadline; `process` kills it.
    """

    name: str
    description: str = ""
    parameters: dict[str, Any]
    effect: Effect = Effect.DESTRUCTIVE
    timeout_s: float = 45.0
    idempotent: bool = False
    resources: tuple[str, ...] = ()
    isolation: Isolation = "thread"
    deny_repeats: bool = False

    @cached_property
    def is_guarded(self) -> bool:
        """Whether a repeated call is denied if it cannot bring a new result."""
        return self.deny_repeats or self.idempotent or self.effect.is_read


class ClientTool(Wire):
    """A function that the caller runs.

    parameters: the JSON schema (of an object) of its arguments. Omit it if there are none.
    timeout_s: how long a call of it waits for its result before it times out. The turn's time limit is paused
        meanwhile.
    """

    name: str
    description: str = Field(default="", max_length=MAX_DESCRIPTION_CHARS)
    parameters: dict[str, Any] = Field(default_factory=lambda: {"type": "object", "properties": {}})
    timeout_s: float = Field(
        default=DEFAULT_CLIENT_TOOL_TIMEOUT_S, gt=0, le=MAX_CLIENT_TOOL_TIMEOUT_S, allow_inf_nan=False
    )

    @field_validator("name")
    @classmethod
    def _callable(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise InvalidInput(
                "client_tools",
                f"{value[:60]!r} is not a name that a model can call; use 1 to 64 of A-Z a-z 0-9 _ -, starting with "
                "a letter or _",
            )
        return value

    @field_validator("parameters", mode="before")
    @classmethod
    def _plain_json(cls, value: object) -> object:
        return check_json("client_tools", value)


def check_client_tools(tools: tuple[ClientTool, ...]) -> None:
    """Raise InvalidInput if there are too many, if they are too large, or if two have the same name."""
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
