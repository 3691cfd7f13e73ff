"""Discover, pin and list the tools of the brains' MCP servers, for `brainq mcp`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from brainq.adapters.models.tool_schema import sent_schema
from brainq.cli.output import counted
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import load_brains
from brainq.engine.tools.mcp.catalogue import Drift, PinnedServer, find_drift, read_catalogue, write_catalogue
from brainq.engine.tools.mcp.names import SEPARATOR, keep_names, model_names
from brainq.engine.tools.mcp.server import McpServer, by_server_name
from brainq.engine.tools.mcp.session import DiscoveryResult, discover
from brainq.engine.tools.mcp.tools import pinning_mode, tools_of_server
from brainq.errors import InvalidInput, SetupError
from brainq.runtime.settings.deployment import load_settings


@dataclass(frozen=True, slots=True)
class PinResult:
    """The result of `brainq mcp pin` for one server."""

    server: str
    pinned: PinnedServer | None
    drift: Drift
    problem: str = ""
    last_words: str = ""

    @property
    def summary(self) -> str:
        if self.pinned is None:
            return f"{self.server}: not pinned: {self.problem}"
        tools = counted(len(self.pinned.tools), "tool")
        return f"{self.server}: {tools} pinned" + (f"; {self.drift}" if self.drift else "; nothing changed")

    @property
    def notes(self) -> list[str]:
        left_out = {} if self.pinned is None else self.pinned.left_out
        lines = [f"not pinned: {name!r}: {why}" for name, why in left_out.items()]
        lines += [f"models see {name!r} as {called}" for name, called in self.renamed.items()]
        lines += [f"the schema of {name!r} is changed for models: {what}" for name, what in self.rewritten.items()]
        return lines + [f"server output: {line}" for line in self.last_words.splitlines()[-5:]]

    @property
    def renamed(self) -> dict[str, str]:
        """The tools that models see under another name, with that name."""
        names = {} if self.pinned is None else model_names(self.server, self.pinned.tools)
        return {name: called for name, called in names.items() if called != f"{self.server}{SEPARATOR}{name}"}

    @property
    def rewritten(self) -> dict[str, str]:
        """The tools whose schema is changed before it is sent to models, with the parts that model services refuse."""
        tools = () if self.pinned is None else self.pinned.tools
        sent = {tool.name: ", ".join(sent_schema(tool.input_schema).rewritten) for tool in tools}
        return {name: what for name, what in sent.items() if what}

    def as_json(self) -> dict[str, Any]:
        drift = {"new": self.drift.new, "changed": self.drift.changed, "gone": self.drift.gone}
        names = [] if self.pinned is None else [tool.name for tool in self.pinned.tools]
        left_out = {} if self.pinned is None else self.pinned.left_out
        problem = {"problem": self.problem} if self.problem else {}
        changes = {"left_out": left_out, "renamed": self.renamed, "rewritten": self.rewritten}
        return {"server": self.server, "tools": names, **drift, **changes, **problem}


def pin_servers(names: Sequence[str]) -> list[PinResult]:
    """Discover the tools of the brains' servers, all or the named ones, and write their catalogues.

    If a server fails, its pinned tools are kept.
    """
    with pinning_mode():
        brains = list(load_brains(load_settings().app))
    known = {server.name for brain in brains for server in brain.mcp}
    if unknown := [name for name in names if name not in known]:
        raise InvalidInput(
            "--server", f"the brains have no MCP server {unknown[0]!r}; they have {', '.join(sorted(known)) or 'none'}"
        )
    catalogues = {
        brain.mcp_catalogue: [one for one in brains if one.mcp_catalogue == brain.mcp_catalogue] for brain in brains
    }
    return [now for path, sharing in catalogues.items() for now in _pin_catalogue(path, sharing, names)]


def _pin_catalogue(path: Path, brains: Sequence[Brain], names: Sequence[str]) -> list[PinResult]:
    servers = _servers_of_catalogue(path, brains)
    try:
        before = read_catalogue(path)
    except SetupError:  # an unreadable catalogue is replaced
        before = {}
    looked = discover([server for name, server in servers.items() if not names or name in names])
    pinned = [_pin_result(name, answer, before.get(name)) for name, answer in looked.items()]
    new = {now.server: now.pinned for now in pinned if now.pinned is not None}
    for server in [server for brain in brains for server in brain.mcp if server.name in new]:
        tools_of_server(server, new[server.name])  # tools_of_server raises if a rule names a tool that does not exist
    catalogue = {name: server for name, server in {**before, **new}.items() if name in servers}
    if servers:
        write_catalogue(path, dict(sorted(catalogue.items())))
    return pinned


def _servers_of_catalogue(path: Path, brains: Sequence[Brain]) -> dict[str, McpServer]:
    """Return the servers of all brains that share this catalogue, without duplicates."""
    servers: dict[str, McpServer] = {}
    for server in [server for brain in brains for server in by_server_name(brain.mcp).values()]:
        if servers.setdefault(server.name, server).key != server.key:
            raise InvalidInput(
                "mcp",
                f"two brains have different servers named {server.name!r} in the catalogue {path}; rename one, or set "
                "another mcp_catalogue on its brain",
            )
    return servers


def _pin_result(name: str, answer: DiscoveryResult, before: PinnedServer | None) -> PinResult:
    if answer.found is None:
        return PinResult(name, None, Drift(), answer.problem, answer.last_words)
    old = PinnedServer(transport=answer.found.transport) if before is None else before
    return PinResult(name, keep_names(name, before, answer.found), find_drift(old, answer.found))


def tool_rows() -> list[dict[str, Any]]:
    """Return a row for each pinned tool of the brains."""
    brains = load_brains(load_settings().app)
    return [row for brain in brains for server in brain.mcp for row in _server_tool_rows(brain, server)]


def _server_tool_rows(brain: Brain, server: McpServer) -> list[dict[str, Any]]:
    pinned = read_catalogue(brain.mcp_catalogue)[server.name]
    tools = tools_of_server(server, pinned)
    return [
        {
            "tool": tool.name,
            "brain": brain.name,
            "server": server.name,
            "effect": tool.spec.effect.value,
            "idempotent": tool.spec.idempotent,
            "lane": ", ".join(tool.spec.resources),
            "timeout_s": tool.spec.timeout_s,
            "task": tool.tasks is not None,
            "description": " ".join(tool.spec.description.split())[:80],
        }
        for tool in tools
    ]
