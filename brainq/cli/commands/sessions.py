"""`brainq session`, `history`, `pause`, `resume`, `interrupt`, `compact`, `drop` and `ready`: a session's queue."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import AsJson, TurnArgument
from brainq.errors import ExitCode

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id.")]


def session(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Show a session: what is live, and what waits.

    Also whether it is paused, which readiness flags no turn has taken, and what people are asked.

    \b
    Examples:
      brainq session s1
      brainq session s1 --json
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_json, stdout
    from brainq.cli.pages.sessions import collect_session, print_session

    with open_brainless_client() as client:
        facts = collect_session(client, session_id)
    if as_json:
        print_json(facts.as_json())
    else:
        print_session(stdout(), facts)


def pause(
    session_id: SessionArgument,
    reason: Annotated[
        str, typer.Option("--reason", help="For people: `brainq show` of a turn that waits shows it.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Let no further turn of a session begin. A live one goes on, and submits are queued.

    \b
    Examples:
      brainq pause s1
      brainq pause s1 --reason "Mia looks into the double booking"
      brainq resume s1                    lets them begin again
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_outcome

    with open_brainless_client() as client:
        changed = client.session(session_id).pause(reason)
        known = bool(client.session(session_id).history(1))
    outcome = f"session {session_id} was paused before, and stays so"
    if changed:
        outcome = f"session {session_id} is paused; `brainq resume {session_id}` lets its turns begin again"
        outcome += "" if known else "; no turn of it is known yet"
    value = {"session_id": session_id, "paused": True, "changed": changed}
    print_outcome(value, outcome, "green" if changed else "yellow", as_json=as_json)


def resume(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Let the turns of a paused session begin again.

    \b
    Examples:
      brainq resume s1
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_outcome

    with open_brainless_client() as client:
        conversation = client.session(session_id)
        changed = conversation.is_paused()
        begun = conversation.resume()
    outcome, style = f"session {session_id} was not paused", "yellow"
    if changed:
        outcome, style = f"session {session_id} goes on" + (f" with turn {begun}" if begun else ""), "green"
    value = {"session_id": session_id, "paused": False, "changed": changed, "live": begun}
    print_outcome(value, outcome, style, as_json=as_json)


def interrupt(
    session_id: SessionArgument,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the turn, for people.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel the live turn of a session; the next one begins. Exit code 5 when none is live.

    \b
    Examples:
      brainq interrupt s1 --reason "never mind"
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_outcome

    with open_brainless_client() as client:
        stopped = client.session(session_id).interrupt(reason)
    outcome, style = f"session {session_id} has no live turn", "yellow"
    if stopped:
        outcome = f"turn {stopped} will be cancelled; `brainq session {session_id}` shows what is next"
        style = "green"
    print_outcome({"session_id": session_id, "turn_id": stopped}, outcome, style, as_json=as_json)
    if not stopped:
        raise typer.Exit(ExitCode.NOT_FOUND)


def compact(
    session_id: SessionArgument,
    request_key: Annotated[
        str | None, typer.Option("--request-key", help="Sending a key again is the same turn: nothing runs twice.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replace a session's older messages by a summary. It is a turn of its own, whose id is printed.

    \b
    Examples:
      brainq compact s1
      brainq tail $(brainq compact s1)
    """
    from brainq.cli.connect import open_client
    from brainq.cli.output import print_json

    with open_client() as client:
        handle = client.session(session_id).compact(request_key)
    if as_json:
        print_json({"turn_id": handle.turn_id, "session_id": session_id})
    else:
        typer.echo(handle.turn_id)


def drop(turn: TurnArgument, as_json: AsJson = False) -> None:
    """Cancel a turn that still waits for its session's live one. A turn that has begun goes on: exit code 8.

    \b
    Examples:
      brainq drop 01k7x2
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_outcome

    with open_brainless_client() as client:
        handle = client.find(turn)
        dropped = client.session(handle.session_id).drop(handle.turn_id)
    outcome, style = f"turn {handle.turn_id} is dropped; it had not begun", "green"
    if not dropped:
        outcome = f"turn {handle.turn_id} does not wait; `brainq cancel {handle.turn_id}` stops a live one"
        style = "yellow"
    value = {"turn_id": handle.turn_id, "session_id": handle.session_id, "dropped": dropped}
    print_outcome(value, outcome, style, as_json=as_json)
    if not dropped:
        raise typer.Exit(ExitCode.REFUSED)


def ready(
    session_id: SessionArgument,
    flag: Annotated[str, typer.Argument(metavar="FLAG", help="A readiness flag, as `brainq session` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Say that all is ready: the turn that waits for it goes on. One to come does not wait.

    A FLAG that no turn waits for is exit code 5. `brainq steer TURN "" --ready` lifts a turn's own readiness hold.

    \b
    Examples:
      brainq ready s1 flag-01k7x3
    """
    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import print_outcome, short

    with open_brainless_client() as client:
        released = client.session(session_id).flag(flag).ready()
    outcome, style = f"{short(flag, 60)} is ready", "green"
    if not released:
        outcome, style = f"session {session_id} has no such flag as {short(flag, 60)!r}, or no more", "yellow"
    print_outcome({"session_id": session_id, "flag": flag, "released": released}, outcome, style, as_json=as_json)
    if not released:
        raise typer.Exit(ExitCode.NOT_FOUND)


def history(
    session_id: SessionArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many turns.")] = 20,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TURN", help="The next page, further back: behind this turn.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a session's conversation: its newest turns. The oldest of them is first.

    \b
    Examples:
      brainq history s1
      brainq history s1 --limit 100 --json
    """
    from rich.text import Text

    from brainq.cli.connect import open_brainless_client
    from brainq.cli.output import STATUS_STYLES, clean, note, print_json, stdout
    from brainq.contracts.message import with_attachment_labels

    with open_brainless_client() as client:
        turns = client.session(session_id).history(limit, after)
    if as_json:
        print_json(turns)
        return
    if not turns:
        note(f"no turns of session {session_id!r}")
    console = stdout()
    for turn in turns:
        console.print(
            Text(turn.turn_id, "dim").append(f"  {turn.state}", STATUS_STYLES.get(turn.state, "")), soft_wrap=True
        )
        if not turn.is_kept:
            console.print(Text("  not kept (redact_logs)", "dim"))
            continue
        for who, text in (("user", with_attachment_labels(turn.user_message, turn.attachments)), ("brain", turn.text)):
            if text:
                console.print(Text(f"{who:<6} ", "bold").append(clean(text), "default"), soft_wrap=True)
        console.print()
