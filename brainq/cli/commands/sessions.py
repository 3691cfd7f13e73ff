"""`brainq sessions`, and a session's queue: `session`, `history`, `pause`, `resume`, `interrupt`, `drop` and others."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.connect import open_brainless_client, open_client, open_operator
from brainq.cli.options import AsJson, Limit, TurnArgument
from brainq.cli.output import (
    STATUS_STYLES,
    clean,
    note,
    print_json,
    print_outcome,
    print_page,
    print_rows,
    short,
    stdout,
)
from brainq.errors import ExitCode

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id.")]


def list_sessions(
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Only those whose id begins so.")] = "",
    limit: Limit = 20,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TURN", help="The next page: behind this turn.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, the one with the newest turn first.

    How many turns each has had, the state of its last one, and how many wait.

    \b
    Examples:
      brainq sessions
      brainq sessions --prefix acme: --json
    """
    from brainq.cli.pages.sessions import sessions_table

    with open_operator() as operator:
        rows = operator.sessions(prefix, limit, after=after)
        if operator.why_away:
            note(f"Redis is away, this is what SQL knows: {operator.why_away}", style="yellow")
    none = "no sessions" + (f" that begin with {prefix!r}" if prefix else "")
    print_rows(rows, sessions_table, none, as_json=as_json)


def session(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Show a session: what is live, and what waits.

    Also whether it is paused, which readiness flags no turn has taken, and what people are asked.

    \b
    Examples:
      brainq session s1
      brainq session s1 --json
    """
    from brainq.cli.pages.sessions import collect_session, print_session

    with open_brainless_client() as client:
        facts = collect_session(client, session_id)
    print_page(facts, print_session, as_json=as_json)


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
    with open_brainless_client() as client:
        changed = client.session(session_id).pause(reason)
        known = bool(client.session(session_id).history(1))
    outcome = f"session {session_id} was paused before, and stays so"
    if changed:
        outcome = f"session {session_id} is paused; `brainq resume {session_id}` lets its turns begin again"
        outcome += "" if known else "; no turn of it is known yet"
    value = {"session_id": session_id, "paused": True, "changed": changed}
    print_outcome(value, outcome, ok=changed, as_json=as_json)


def resume(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Let the turns of a paused session begin again.

    \b
    Examples:
      brainq resume s1
    """
    with open_brainless_client() as client:
        conversation = client.session(session_id)
        changed = conversation.is_paused()
        begun = conversation.resume()
    goes_on = f"session {session_id} goes on" + (f" with turn {begun}" if begun else "")
    outcome = goes_on if changed else f"session {session_id} was not paused"
    value = {"session_id": session_id, "paused": False, "changed": changed, "live": begun}
    print_outcome(value, outcome, ok=changed, as_json=as_json)


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
    with open_brainless_client() as client:
        stopped = client.session(session_id).interrupt(reason)
    outcome = f"session {session_id} has no live turn"
    if stopped:
        outcome = f"turn {stopped} will be cancelled; `brainq session {session_id}` shows what is next"
    value = {"session_id": session_id, "turn_id": stopped}
    print_outcome(value, outcome, ok=bool(stopped), exit_code=ExitCode.NOT_FOUND, as_json=as_json)


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
    with open_brainless_client() as client:
        handle = client.find(turn)
        dropped = client.session(handle.session_id).drop(handle.turn_id)
    outcome = f"turn {handle.turn_id} is dropped; it had not begun"
    if not dropped:
        outcome = f"turn {handle.turn_id} does not wait; `brainq cancel {handle.turn_id}` stops a live one"
    value = {"turn_id": handle.turn_id, "session_id": handle.session_id, "dropped": dropped}
    print_outcome(value, outcome, ok=dropped, exit_code=ExitCode.REFUSED, as_json=as_json)


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
    with open_brainless_client() as client:
        released = client.session(session_id).flag(flag).ready()
    outcome = f"{short(flag, 60)} is ready"
    if not released:
        outcome = f"session {session_id} has no such flag as {short(flag, 60)!r}, or no more"
    value = {"session_id": session_id, "flag": flag, "released": released}
    print_outcome(value, outcome, ok=released, exit_code=ExitCode.NOT_FOUND, as_json=as_json)


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
