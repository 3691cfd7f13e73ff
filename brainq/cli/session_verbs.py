"""`brainq interrupt`, `compact`, `drop`, `ready` and `history`: what a producer does with a session."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson, TurnArgument
from brainq.cli.session import SessionArgument


def interrupt(
    session_id: SessionArgument,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the turn, for people.")] = "",
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Cancel the live turn of a session; the next one begins. Exit code 5 when none is live.

    \b
    Examples:
      brainq interrupt s1 --reason "never mind"
    """
    from brainq.cli.codes import Exit
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import operator

    with operator() as client:
        stopped = client.session(session_id).interrupt(reason)
    if as_json:
        print_json({"session_id": session_id, "turn_id": stopped})
    elif stopped:
        say(f"turn {stopped} will be cancelled; `brainq session {session_id}` shows what is next", "green")
    else:
        say(f"session {session_id} has no live turn", style="yellow")
    if not stopped:
        raise typer.Exit(Exit.NOT_FOUND)


def compact(
    session_id: SessionArgument,
    request_key: Annotated[
        str | None,
        typer.Option("--request-key", help="Sending a key again is the same turn: nothing runs twice."),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Replace a session's older messages by a summary. It is a turn of its own, whose id is printed.

    \b
    Examples:
      brainq compact s1
      brainq tail $(brainq compact s1)
    """
    from brainq.cli.output import print_json
    from brainq.cli.reach import producer

    with producer() as client:
        handle = client.session(session_id).compact(request_key)
    if as_json:
        print_json({"turn_id": handle.turn_id, "session_id": session_id})
    else:
        typer.echo(handle.turn_id)


def drop(turn: TurnArgument, as_json: AsJson = False, app: App = "") -> None:
    """Cancel a turn that still waits for its session's live one. A turn that has begun is left alone: exit code 8.

    \b
    Examples:
      brainq drop 01k7x2
    """
    from brainq.cli.codes import Exit
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import operator

    with operator() as client:
        found = client.find(turn)
        dropped = client.session(found.session_id).drop(found.turn_id)
    if as_json:
        print_json({"turn_id": found.turn_id, "session_id": found.session_id, "dropped": dropped})
    elif dropped:
        say(f"turn {found.turn_id} is dropped; it had not begun", style="green")
    else:
        say(f"turn {found.turn_id} does not wait; `brainq cancel {found.turn_id}` stops a live one", "yellow")
    if not dropped:
        raise typer.Exit(Exit.REFUSED)


def ready(
    session_id: SessionArgument,
    flag: Annotated[
        str, typer.Argument(metavar="FLAG", help="A readiness flag, as `brainq session` shows it.")
    ],
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Say that all is ready: the turn that waits for it goes on. One to come does not wait.

    A FLAG that nobody waits for is exit code 5. `brainq steer TURN "" --ready` lifts a turn's own readiness hold.

    \b
    Examples:
      brainq ready s1 flag-01k7x3
    """
    from brainq.cli.codes import Exit
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import operator
    from brainq.cli.style import short

    with operator() as client:
        released = client.session(session_id).flag(flag).ready()
    if as_json:
        print_json({"session_id": session_id, "flag": flag, "released": released})
    elif released:
        say(f"{short(flag, 60)} is ready", style="green")
    else:
        say(f"session {session_id} has no such flag as {short(flag, 60)!r}, or no more", style="yellow")
    if not released:
        raise typer.Exit(Exit.NOT_FOUND)


def history(
    session_id: SessionArgument,
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many turns.")
    ] = 20,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="TURN", help="The next page, further back: behind this turn."),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Print a session's conversation: its newest turns. The oldest of them is first.

    \b
    Examples:
      brainq history s1
      brainq history s1 --limit 100 --json
    """
    from rich.text import Text

    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.reach import operator
    from brainq.cli.style import STATUS_STYLES, clean
    from brainq.contracts.attachment import in_text

    with operator() as client:
        turns = client.session(session_id).history(limit, after)
    if as_json:
        print_json([turn.model_dump(mode="json") for turn in turns])
        return
    if not turns:
        say(f"no turns of session {session_id!r}")
    console = stdout()
    for turn in turns:
        console.print(
            Text(turn.turn_id, "dim").append(f"  {turn.state}", STATUS_STYLES.get(turn.state, "")),
            soft_wrap=True,
        )
        if not turn.is_kept:
            console.print(Text("  not kept (redact_logs)", "dim"))
            continue
        for who, said in (("user", in_text(turn.user_message, turn.attachments)), ("brain", turn.text)):
            if said:
                console.print(Text(f"{who:<6} ", "bold").append(clean(said), "default"), soft_wrap=True)
        console.print()
