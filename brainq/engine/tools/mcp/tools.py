"""The tools of a brain that come from pinned servers: names, effects, and the argument for an idempotency key."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike
from typing import Any, cast

from brainq.contracts.status import Effect
from brainq.engine.tools.mcp.calls import ServerTool
from brainq.engine.tools.mcp.catalogue import PIN_REMEDY, PinnedServer, PinnedTool, catalogue_hash, read_catalogue
from brainq.engine.tools.mcp.names import model_names
from brainq.engine.tools.mcp.server import McpServer, McpTool, SecretFilter, by_server_name
from brainq.engine.tools.mcp.session import INSTALL_HINT
from brainq.engine.tools.results import DEFAULT_PENDING_S
from brainq.engine.tools.tool import Tool, make_tool
from brainq.errors import InvalidInput, SetupError

_is_pinning: ContextVar[bool] = ContextVar("brainq_mcp_is_pinning", default=False)


def effect_of(annotations: Mapping[str, Any] | None) -> Effect:
    """Return the effect. Missing hints have the protocol's defaults: a destructive change, in an open world."""
    if not annotations:
        return Effect.DESTRUCTIVE
    if annotations.get("readOnlyHint") is True:
        return Effect.READ_ONLY
    if annotations.get("destructiveHint") is not False:
        return Effect.DESTRUCTIVE
    return Effect.LOCAL_WRITE if annotations.get("openWorldHint") is False else Effect.NETWORK


def is_open_world(annotations: Mapping[str, Any] | None) -> bool:
    """Return whether the tool may reach third parties, which is the protocol's default."""
    return not annotations or annotations.get("openWorldHint") is not False


def is_idempotent(annotations: Mapping[str, Any] | None) -> bool:
    """Return whether the server declares that a repeated call changes nothing more."""
    return bool(annotations) and annotations.get("idempotentHint") is True


def without_key(schema: Mapping[str, Any], argument: str, effect: Effect) -> dict[str, Any]:
    """Return the tool's input schema without this argument, which brainq fills with an idempotency key.

    Raises ValueError with the reason if the argument cannot hold a key.
    """
    if effect.is_read:
        raise ValueError("the tool is a read, and needs no key; leave it out, or set effect=")
    properties = dict(cast("Mapping[str, Any]", schema.get("properties") or {}))
    if argument not in properties:
        raise ValueError(f"the tool has no argument {argument!r}; it has {', '.join(properties) or 'none'}")
    if not _takes_text(properties.pop(argument)):
        raise ValueError(f"the argument {argument!r} does not accept text, and a key is text")
    kept = {**schema, "properties": properties}
    if "required" in schema:
        kept["required"] = [name for name in schema["required"] if name != argument]
    return kept


def _takes_text(schema: Any) -> bool:
    if not isinstance(schema, Mapping):
        return schema is not False
    words = cast("Mapping[str, Any]", schema)
    kinds = words.get("type")
    if kinds is not None:
        return "string" in ([kinds] if isinstance(kinds, str) else kinds)
    alternatives = words.get("anyOf") or words.get("oneOf")
    return not alternatives or any(_takes_text(one) for one in alternatives)


@contextlib.contextmanager
def pinning_mode() -> Generator[None]:
    """Allow a brain to load without pinned servers, and without their tools, until the context ends."""
    token = _is_pinning.set(True)
    try:
        yield
    finally:
        _is_pinning.reset(token)


def tools_of_servers(servers: Sequence[McpServer], catalogue: str | PathLike[str]) -> list[Tool]:
    """Return the tools of all servers in the catalogue. Starts nothing.

    Raises InvalidInput for servers that cannot be combined. Raises SetupError if one is not pinned, or if the SDK is
    missing.
    """
    named = by_server_name(servers)
    if named and find_spec("mcp") is None:
        raise SetupError(INSTALL_HINT)
    pinned: Mapping[str, PinnedServer] = {} if _is_pinning.get() or not named else read_catalogue(catalogue)
    tools: list[Tool] = []
    for name, server in named.items():
        if name in pinned:
            tools += tools_of_server(server, pinned[name])
        elif not _is_pinning.get():
            raise SetupError(f"MCP server {name!r} is not in the catalogue {catalogue}; {PIN_REMEDY}")
    return tools


def tools_of_server(server: McpServer, pinned: PinnedServer) -> list[Tool]:
    """Return one server's tools, without hidden ones. Raises InvalidInput for rules of unknown tools, and for an
    argument that cannot hold an idempotency key."""
    offered = pinned.by_name
    if unknown := sorted(set(server.tools) - set(offered) - set(pinned.left_out)):
        raise InvalidInput(
            "tools",
            f"MCP server {server.name!r} has no tool named {unknown[0]!r}; it has {', '.join(offered) or 'none'}",
        )
    key = (server.key, catalogue_hash(pinned))  # tools of the same server and the same list share a session
    names = model_names(server.name, pinned.tools)
    shown = [tool for tool in pinned.tools if not server.rule(tool.name).hidden]
    return [_server_tool(key, server, pinned, tool, names[tool.name]) for tool in shown]


def _server_tool(key: Hashable, server: McpServer, pinned: PinnedServer, tool: PinnedTool, name: str) -> Tool:
    rule = server.rule(tool.name)
    effect = effect_of(tool.annotations) if rule.effect is None else rule.effect
    argument = rule.idempotency_argument
    idempotent = rule.idempotent
    if idempotent is None:
        idempotent = argument is not None or is_idempotent(tool.annotations)
    try:
        parameters = tool.input_schema if argument is None else without_key(tool.input_schema, argument, effect)
    except ValueError as problem:
        where = f"tools[{tool.name!r}].idempotency_argument"
        raise InvalidInput(where, f"MCP server {server.name!r}: {problem}") from None
    task_s = _task_wait_s(server, tool, rule)
    secrets = SecretFilter.for_server(server)
    calls = ServerTool(key, server, pinned, tool.name, effect.is_read, idempotent, secrets, argument, task_s)
    made = make_tool(
        calls.function(),
        name=name,
        description=tool.description or tool.title or "",
        parameters=parameters,
        effect=effect,
        idempotent=idempotent,
        lane=_server_lane(server, rule.lane, effect),
        approval=rule.approval,
        untrusted=is_open_world(tool.annotations) if rule.untrusted is None else rule.untrusted,
        timeout_s=server.timeout_s if rule.timeout_s is None or task_s is not None else rule.timeout_s,
        lane_scope=server.lane_scope,
    )
    return made if task_s is None else replace(made, tasks=calls)


def _task_wait_s(server: McpServer, tool: PinnedTool, rule: McpTool) -> float | None:
    """Return how long a call waits for the tool's task, or None if it has none. Raises InvalidInput."""
    support = tool.task_support
    if (rule.task and support is None) or (rule.task is False and support == "required"):
        only = "only" if support else "not"
        raise InvalidInput(
            f"tools[{tool.name!r}].task",
            f"MCP server {server.name!r}: the tool can {only} be called as a task; leave task= out",
        )
    if not (support == "required" if rule.task is None else rule.task):
        return None
    return DEFAULT_PENDING_S if rule.timeout_s is None else rule.timeout_s


def _server_lane(server: McpServer, lane: str | None, effect: Effect) -> str | None:
    if lane is not None:
        return lane
    return None if effect.is_read else f"mcp:{server.name}"
