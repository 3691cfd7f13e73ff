"""From pinned servers to tools of a brain."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Hashable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from importlib.util import find_spec
from os import PathLike

from brainq.contracts.effect import Effect
from brainq.errors import InvalidInput, SetupError
from brainq.tools.mcp.annotations import effect_of, is_idempotent, is_open_world
from brainq.tools.mcp.catalogue import REMEDY, read_catalogue
from brainq.tools.mcp.function import tool_function
from brainq.tools.mcp.key_argument import without_key
from brainq.tools.mcp.pinned import PinnedServer, PinnedTool, hash_of
from brainq.tools.mcp.secrets import Secrets
from brainq.tools.mcp.server import McpServer, McpTool, by_server_name
from brainq.tools.mcp.sessions import EXTRA
from brainq.tools.mcp.tasks import McpTasks
from brainq.tools.mcp.tool_name import tool_name
from brainq.tools.pending import DEFAULT_PENDING_S
from brainq.tools.tool import Tool, make_tool

_is_pinning: ContextVar[bool] = ContextVar("brainq_mcp_is_pinning", default=False)


@contextlib.contextmanager
def pinning() -> Generator[None]:
    """In it a brain whose servers are not pinned can be loaded: it has none of their tools."""
    token = _is_pinning.set(True)
    try:
        yield
    finally:
        _is_pinning.reset(token)


def tools_of_servers(servers: Sequence[McpServer], catalogue: str | PathLike[str]) -> list[Tool]:
    """The tools of all servers as the catalogue has them; nothing is started.

    Raises InvalidInput for servers that cannot go together, SetupError for one that is not pinned, or without the SDK.
    """
    named = by_server_name(servers)
    if named and find_spec("mcp") is None:
        raise SetupError(EXTRA)
    pinned: Mapping[str, PinnedServer] = {} if _is_pinning.get() or not named else read_catalogue(catalogue)
    tools: list[Tool] = []
    for name, server in named.items():
        if name in pinned:
            tools += tools_of(server, pinned[name])
        elif not _is_pinning.get():
            raise SetupError(f"MCP server {name!r} is not in the catalogue {catalogue}; {REMEDY}")
    return tools


def tools_of(server: McpServer, pinned: PinnedServer) -> list[Tool]:
    """One server's tools, without those that are hidden. Raises InvalidInput for rules of tools it does not have, and
    for an idempotency argument that takes no key."""
    offered = pinned.by_name
    if unknown := sorted(set(server.tools) - set(offered) - set(pinned.left_out)):
        raise InvalidInput(
            "tools",
            f"MCP server {server.name!r} has no tool named {unknown[0]!r}; it has {', '.join(offered) or 'none'}",
        )
    key = (server.key, hash_of(pinned))  # of the same server, a session that compares with the same list
    return [_tool(key, server, pinned, tool) for tool in pinned.tools if not server.rule(tool.name).hidden]


def _tool(key: Hashable, server: McpServer, pinned: PinnedServer, tool: PinnedTool) -> Tool:
    rule = server.rule(tool.name)
    effect = effect_of(tool.annotations) if rule.effect is None else rule.effect
    argument = rule.idempotency_argument
    idempotent = rule.idempotent
    if idempotent is None:
        idempotent = argument is not None or is_idempotent(tool.annotations)
    try:
        parameters = (
            tool.input_schema if argument is None else without_key(tool.input_schema, argument, effect)
        )
    except ValueError as problem:
        where = f"tools[{tool.name!r}].idempotency_argument"
        raise InvalidInput(where, f"MCP server {server.name!r}: {problem}") from None
    task_s = _task_s(server, tool, rule)
    made = make_tool(
        tool_function(
            key,
            server,
            pinned,
            tool,
            effect=effect,
            idempotent=idempotent,
            key_argument=argument,
            task_s=task_s,
        ),
        name=tool_name(server.name, tool.name),
        description=tool.description or tool.title or "",
        parameters=parameters,
        effect=effect,
        idempotent=idempotent,
        lane=_lane(server, rule.lane, effect),
        approval=rule.approval,
        untrusted=is_open_world(tool.annotations) if rule.untrusted is None else rule.untrusted,
        timeout_s=server.timeout_s if rule.timeout_s is None or task_s is not None else rule.timeout_s,
    )
    if task_s is None:
        return made
    return replace(made, tasks=McpTasks(key, server, pinned, tool.name, Secrets.of(server)))


def _task_s(server: McpServer, tool: PinnedTool, rule: McpTool) -> float | None:
    """How long a call waits for the tool's task; None where it is called without one. Raises InvalidInput."""
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


def _lane(server: McpServer, lane: str | None, effect: Effect) -> str | None:
    if lane is not None:
        return lane
    return None if effect.is_read else f"mcp:{server.name}"
