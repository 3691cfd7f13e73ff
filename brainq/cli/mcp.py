"""`brainq mcp`: the tools of MCP servers, looked at and pinned."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson

HELP = """MCP servers of the brain: look at what they offer, and pin it.

    \b
    A brain has the tools that are pinned in its catalogue (mcp.lock.json), and no others. Commit the file: workers
    read it, and none starts a server to know its tools.
    """

app = typer.Typer(help=HELP, rich_markup_mode=None, no_args_is_help=True)


@app.callback(help=HELP)
def mcp() -> None:
    """MCP servers of the brain."""


@app.command("pin")
def pin(
    server: Annotated[
        list[str] | None,
        typer.Option(
            "--server", metavar="NAME", help="Only this one; the others stay as they are. Repeatable."
        ),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Start the servers, show what is new or changed, and write what they offer to the catalogue.

    \b
    Examples:
      brainq mcp pin
      brainq mcp pin --server git
    """
    from brainq.cli.codes import Exit
    from brainq.cli.mcp_servers import pin_servers
    from brainq.cli.output import print_json, say

    pinned = pin_servers(server or [])
    if as_json:
        print_json([looked.as_json() for looked in pinned])
    for looked in pinned if not as_json else []:
        say(looked.said, style="red" if looked.problem else "green")
        for line in looked.notes:
            say(f"  {line}")
    raise typer.Exit(Exit.FAILED if any(looked.problem for looked in pinned) else Exit.OK)


@app.command("list")
def list_tools(as_json: AsJson = False, app: App = "") -> None:
    """List the pinned tools as the brain has them. No server is started.

    \b
    Examples:
      brainq mcp list
      brainq -A shop.agent:brain mcp list --json
    """
    from brainq.cli.mcp_servers import rows_of_tools
    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.table import PageTable, fact, key, words

    rows = rows_of_tools()
    if as_json:
        print_json(rows)
    elif rows:
        table = PageTable(
            key("tool"),
            fact("brain", 1),
            fact("effect", 3),
            fact("lane", 2),
            fact("timeout", 1),
            words("says", 1),
        )
        for row in rows:
            cells = (
                row["tool"],
                row["brain"],
                row["effect"],
                row["lane"],
                f"{row['timeout_s']:g} s",
                row["description"],
            )
            table.add(*map(str, cells))
        stdout().print(table)
    else:
        say("no brain has tools of MCP servers")
