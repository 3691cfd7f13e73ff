"""The catalogue of pinned servers: the pinned part of a server's list, the drift of its tools, and the file beside the
app."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from brainq.contracts.base import first_problem
from brainq.engine.tools.mcp.server import McpServer
from brainq.engine.tools.schema import check_tool_schema
from brainq.errors import SetupError, ToolSchemaError
from brainq.runtime.text.surrogates import clean_json

MAX_TOOLS = 500
_TASK_SUPPORT = ("optional", "required")
MAX_TOOL_CHARS = 100_000  # description and schemas, because a model reads them at every step
DEFAULT_CATALOGUE = "mcp.lock.json"
VERSION = 1
PIN_REMEDY = "look at what the servers offer and pin it: brainq mcp pin"


class PinnedTool(BaseModel):
    """One tool in a server's list. The names of the fields are those of the protocol's JSON.

    task_support: whether it can, or must, be called as a task; the protocol's `execution.taskSupport`.
    model_name: the name for models, if it is not the one that `model_names` derives from the list, because the tool was
        pinned under it before. The server does not send it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: dict[str, Any] = Field(alias="inputSchema")
    output_schema: dict[str, Any] | None = Field(default=None, alias="outputSchema")
    annotations: dict[str, Any] | None = None
    task_support: Literal["optional", "required"] | None = Field(default=None, alias="taskSupport")
    model_name: str | None = Field(default=None, alias="modelName")

    @property
    def as_listed(self) -> PinnedTool:
        """The part that the server sends."""
        return self if self.model_name is None else self.model_copy(update={"model_name": None})


class PinnedServer(BaseModel):
    """A server's tools, in its order.

    env, headers: the names of its settings, never their values.
    left_out: maps a tool to the reason why no model can call it.
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


def pinned_json(pinned: PinnedTool | PinnedServer) -> dict[str, Any]:
    """Return the form in the file."""
    return pinned.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)


def catalogue_hash(pinned: PinnedTool | PinnedServer) -> str:
    """Return a hash that changes with everything that a model or brainq reads."""
    text = json.dumps(pinned_json(pinned), sort_keys=True, separators=(",", ":"))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


@dataclass(frozen=True, slots=True)
class Drift:
    """The names of changed tools, in order. `malformed` has the reasons of tools that are gone because no model can
    call them."""

    new: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    malformed: Mapping[str, str] = field(default_factory=dict[str, str])

    def __bool__(self) -> bool:
        return bool(self.new or self.changed or self.gone)

    def __str__(self) -> str:
        gone = [f"{name} ({self.malformed[name]})" if name in self.malformed else name for name in self.gone]
        parts = {"new": self.new, "changed": self.changed, "gone": gone}
        return "; ".join(f"{word}: {', '.join(names)}" for word, names in parts.items() if names)


def _listing_differs(before: PinnedTool, after: PinnedTool) -> bool:
    return catalogue_hash(before.as_listed) != catalogue_hash(after.as_listed)


def find_drift(pinned: PinnedServer, found: PinnedServer) -> Drift:
    before, after = pinned.by_name, found.by_name
    both = [name for name in before if name in after]
    gone = tuple(name for name in before if name not in after)
    return Drift(
        new=tuple(name for name in after if name not in before),
        changed=tuple(name for name in both if _listing_differs(before[name], after[name])),
        gone=gone,
        malformed={name: found.left_out[name] for name in gone if name in found.left_out},
    )


@dataclass(frozen=True, slots=True)
class ListedTool:
    """One entry of a server's list, as JSON.

    entry: the entry in the protocol's form, or the server's value if that is not a tool.
    problem: what is wrong with the entry, or "" if the protocol allows it.
    """

    entry: object
    problem: str = ""


def pinned_server(server: McpServer, listed: Iterable[ListedTool]) -> PinnedServer:
    """Return a server's tools. An entry that no model can call is left out, with the reason, and affects no other."""
    tools: dict[str, PinnedTool] = {}
    left_out: dict[str, str] = {}
    for number, one in enumerate(listed):
        entry = cast("dict[str, Any]", one.entry) if isinstance(one.entry, dict) else {}
        name = entry.get("name")
        called = name if isinstance(name, str) and name else f"#{number + 1}"
        try:
            if number >= MAX_TOOLS:
                raise ToolSchemaError(f"the server lists more than {MAX_TOOLS} tools")
            if called in tools:
                raise ToolSchemaError("the server lists it twice")
            if called != name or one.problem:
                raise ToolSchemaError(one.problem or "it has no name")
            tools[called] = _pinned_tool(called, entry)
        except ToolSchemaError as error:
            left_out[called[:200]] = " ".join(str(error).split())[:300]
        except ValidationError as error:
            left_out[called[:200]] = str(first_problem(error.errors(include_url=False), entry, whole="the tool"))[:300]
    return PinnedServer(
        transport=server.transport,
        env=tuple(sorted(server.env)),
        headers=tuple(sorted(server.headers)),
        tools=tuple(tools.values()),
        leftOut=left_out,
    )


def _pinned_tool(name: str, entry: dict[str, Any]) -> PinnedTool:
    if "inputSchema" not in entry:
        raise ToolSchemaError('it has no inputSchema; one for a tool without arguments is {"type": "object"}')
    kept = {key: entry[key] for key in ("name", "title", "description", "annotations") if key in entry}
    kept["inputSchema"] = check_tool_schema(name, entry.get("inputSchema"))
    if entry.get("outputSchema") is not None:
        kept["outputSchema"] = entry["outputSchema"]
    if (support := cast("dict[str, Any]", entry.get("execution") or {}).get("taskSupport")) in _TASK_SUPPORT:
        kept["taskSupport"] = support
    kept = cast("dict[str, Any]", clean_json(kept))
    if len(json.dumps(kept)) > MAX_TOOL_CHARS:
        raise ToolSchemaError(f"its description and schemas have more than {MAX_TOOL_CHARS:,} characters")
    return PinnedTool.model_validate(kept)


def read_catalogue(path: str | PathLike[str]) -> dict[str, PinnedServer]:
    """Return the pinned servers by name, or none if there is no file. Raises SetupError for an invalid file."""
    try:
        text = Path(path).read_text("utf-8")
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise SetupError(f"the MCP catalogue {path} cannot be read: {error.strerror}") from error
    try:
        read: Any = json.loads(text)
        if read["version"] != VERSION:
            raise SetupError(f"the MCP catalogue {path} is of version {read['version']!r}; {PIN_REMEDY}")
        return {
            name: _read_server(path, name, dict(entry))
            for name, entry in cast("dict[str, Any]", read["servers"]).items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = f"{error.error_count()} fields are wrong" if isinstance(error, ValidationError) else repr(error)
        raise SetupError(
            f"the MCP catalogue {path} is not what `brainq mcp pin` writes ({why}); {PIN_REMEDY}"
        ) from error


def write_catalogue(path: str | PathLike[str], servers: Mapping[str, PinnedServer]) -> None:
    """Replace the file in one step. Raises SetupError."""
    entries = {name: {"hash": catalogue_hash(server), **pinned_json(server)} for name, server in servers.items()}
    text = json.dumps({"version": VERSION, "servers": entries}, indent=2, ensure_ascii=False) + "\n"
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        beside.write_text(text, "utf-8", errors="replace")
        beside.replace(target)
    except OSError as error:
        raise SetupError(f"the MCP catalogue {path} cannot be written: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)


def _read_server(path: str | PathLike[str], name: str, entry: dict[str, Any]) -> PinnedServer:
    pinned_hash = entry.pop("hash")
    server = PinnedServer.model_validate(entry)
    if catalogue_hash(server) != pinned_hash:
        raise SetupError(
            f"the MCP catalogue {path} was changed by hand: server {name!r} does not fit its hash; {PIN_REMEDY}. "
            "Rules that differ from the server's belong in McpServer(tools={...})"
        )
    return server
