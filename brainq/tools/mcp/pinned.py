"""What a server offers, as it was looked at and pinned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class PinnedTool(BaseModel):
    """One tool as the server lists it; field names as in the protocol's JSON.

    task_support   whether it can, or must, be called as a task; the protocol's `execution.taskSupport`
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] = Field(alias="inputSchema")
    output_schema: dict[str, Any] | None = Field(default=None, alias="outputSchema")
    annotations: dict[str, Any] | None = None
    task_support: Literal["optional", "required"] | None = Field(default=None, alias="taskSupport")


class PinnedServer(BaseModel):
    """A server's tools, in its order.

    env, headers   the names of what it was given; never their values
    left_out       tool -> why no model can call it
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    transport: str
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    tools: tuple[PinnedTool, ...] = ()
    left_out: dict[str, str] = Field(default_factory=dict[str, str], alias="leftOut")

    @property
    def by_name(self) -> Mapping[str, PinnedTool]:
        return {tool.name: tool for tool in self.tools}


def as_json(pinned: PinnedTool | PinnedServer) -> dict[str, Any]:
    """As it stands in the file."""
    return pinned.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def hash_of(pinned: PinnedTool | PinnedServer) -> str:
    """Differs if anything does that a model or brainq reads."""
    text = json.dumps(as_json(pinned), sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
