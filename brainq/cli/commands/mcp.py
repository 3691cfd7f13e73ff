"""`brainq mcp`: pin and list the tools of MCP servers, and serve the brains as tools of an MCP server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brainq.cli.connect import export_redis_url
from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, Level, LogLevel
from brainq.cli.output import note, print_json, print_rows
from brainq.errors import ExitCode, SetupError

if TYPE_CHECKING:
    from brainq.cli.pages.layout import PageTable

HELP = """Inspect and pin the tools of the brain's MCP servers.

    \b
    A brain has only the tools that are pinned in its catalogue (mcp.lock.json). Commit the file: workers read it
    and do not start a server to learn its tools.

    \b
    `brainq mcp serve` is the opposite: it offers the brains as tools to other programs.
    """
app = command_group(HELP)


@subcommand(app, "pin")
def pin(
    server: Annotated[
        list[str] | None,
        typer.Option("--server", metavar="NAME", help="Only this server; the others stay unchanged. Repeatable."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start the MCP servers, print new and changed tools, and write all tools to the catalogue.

    \b
    Examples:
      brainq mcp pin
      brainq mcp pin --server git
    """
    from brainq.cli.mcp_pins import pin_servers

    pinned = pin_servers(server or [])
    if as_json:
        print_json(pinned)
    for looked in pinned if not as_json else []:
        note(looked.summary, style="red" if looked.problem else "green")
        for line in looked.notes:
            note(f"  {line}")
    raise typer.Exit(ExitCode.FAILED if any(looked.problem for looked in pinned) else ExitCode.OK)


@subcommand(app, "list")
def list_tools(as_json: AsJson = False) -> None:
    """List the pinned tools. No server is started.

    \b
    Examples:
      brainq mcp list
      brainq -A shop.agent:brain mcp list --json
    """
    from brainq.cli.mcp_pins import tool_rows

    print_rows(tool_rows(), _tools_table, "no brain has tools of MCP servers", as_json=as_json)


def _tools_table(rows: Sequence[Mapping[str, Any]]) -> PageTable:
    from brainq.cli.pages.layout import PageTable, fact, key, words

    return PageTable(
        {
            key("tool"): row["tool"],
            fact("brain", 1): row["brain"],
            fact("effect", 3): row["effect"],
            fact("lane", 2): row["lane"],
            fact("timeout", 1): f"{row['timeout_s']:g} s" + (", then a task" if row["task"] else ""),
            words("says", 1): row["description"],
        }
        for row in rows
    )


@subcommand(app, "serve")
def serve(level: LogLevel = Level.WARNING) -> None:
    """Serve the brains as tools over stdin and stdout, for programs such as Claude, Cursor or the MCP Inspector.

    \b
    The server submits turns to a fleet that runs elsewhere, with the rights of this command line. Logs go to stderr.
    For programs with a token, `brainq serve` offers the same tools at /mcp.

    \b
    Examples:
      brainq mcp serve
      claude mcp add shop -- brainq -A shop.agent:brain mcp serve
    """
    from brainq.cli.commands.run import require_http
    from brainq.engine.brain.brains import load_brains
    from brainq.runtime.observe.logs import configure_logs
    from brainq.runtime.settings.deployment import load_settings
    from brainq.runtime.settings.extensions import load_extension

    require_http()
    if find_spec("mcp") is None:
        raise SetupError("the MCP server needs the MCP SDK, which is not installed; pip install 'brainq[http,mcp]'")
    configure_logs(level.value)
    export_redis_url()
    settings = load_settings()
    brains = load_brains(settings.app)

    from brainq.gateway.edge.authentication import local_authenticator
    from brainq.gateway.server import make_gateway

    load_extension("brainq.servers", "mcp")(make_gateway(settings, brains, local_authenticator()))
