"""Whether MCP servers start, and offer what was pinned."""

from __future__ import annotations

from collections.abc import Iterator

from brainq.brain import Brain
from brainq.cli.style import counted
from brainq.errors import SetupError
from brainq.preflight.check import Check, fail, ok, warn
from brainq.tools.mcp.catalogue import read_catalogue
from brainq.tools.mcp.discover import discover
from brainq.tools.mcp.drift import drift_of
from brainq.tools.mcp.tool_name import tool_name


def check_mcp(brain: Brain) -> Iterator[Check]:
    """Starts the brain's servers, each in a process of its own, and ends them."""
    if not brain.mcp:
        return
    try:
        pinned, looked = read_catalogue(brain.mcp_catalogue), discover(brain.mcp)
    except SetupError as error:
        yield fail("mcp", str(error), "")
        return
    for name, seen in looked.items():
        if seen.found is None:
            yield fail(
                "mcp", seen.problem, "its calls fail until it starts; brainq mcp pin shows what it writes"
            )
        elif drift := drift_of(pinned[name], seen.found):
            yield warn(
                f"mcp {name}",
                f"its tools are not those that were pinned: {drift}",
                "new ones are not offered, changed ones are not called; look at them, then: brainq mcp pin",
            )
        else:
            tasks = _as_tasks(brain, name)
            said = f"; {tasks} called as tasks" if tasks else ""
            yield ok(f"mcp {name}", f"{counted(len(seen.found.tools), 'tool')}, as pinned{said}")


def _as_tasks(brain: Brain, server: str) -> int:
    prefix = tool_name(server, "")
    return sum(tool.tasks is not None and name.startswith(prefix) for name, tool in brain.tools.items())
