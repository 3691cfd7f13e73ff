"""`brainq sessions`, and the commands of one session: `session`, `history`, `pause`, `resume`, `interrupt`, `drop`."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli import output
from brainq.cli.connect import open_brainless_client, open_client, open_operator
from brainq.cli.options import AsJson, Limit, TurnArgument
from brainq.errors import ExitCode

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id.")]


def list_sessions(
    prefix: Annotated[str, typer.Option("--prefix", "-p", help="Only sessions whose id begins with this prefix.")] = "",
    limit: Limit = 20,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TURN", help="The next page: sessions last used before this turn.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List sessions, most recently used first.

    Each row has the number of turns, the state of the last one, and the number of waiting turns.

    \b
    Examples:
      brainq sessions
      brainq sessions --prefix acme: --json
    """
    from brainq.cli.pages.sessions import sessions_table

    with open_operator() as operator:
        rows = operator.sessions(prefix, limit, after=after)
        if operator.why_away:
            output.note(f"Redis is unreachable, so this list comes from SQL only: {operator.why_away}", style="yellow")
    none = "no sessions" + (f" that begin with {prefix!r}" if prefix else "")
    output.print_rows(rows, sessions_table, none, as_json=as_json)


def session(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Show a session: its live turn and its waiting turns.

    The page also shows whether the session is paused, its unused readiness flags, and open approvals.

    \b
    Examples:
      brainq session s1
      brainq session s1 --json
    """
    from brainq.cli.pages.sessions import collect_session, print_session

    with open_brainless_client() as client:
        facts = collect_session(client, session_id)
    output.print_page(facts, print_session, as_json=as_json)


def pause(
    session_id: SessionArgument,
    reason: Annotated[
        str, typer.Option("--reason", help="The reason. `brainq show` shows it for a waiting turn.")
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Pause a session: no further turn starts. The live turn continues, and submitted turns are queued.

    \b
    Examples:
      brainq pause s1
      brainq pause s1 --reason "Mia looks into the double booking"
      brainq resume s1                    undo
    """
    with open_brainless_client() as client:
        changed = client.session(session_id).pause(reason)
        known = bool(client.session(session_id).history(1))
    outcome = f"session {session_id} was already paused"
    if changed:
        outcome = f"session {session_id} is paused; `brainq resume {session_id}` resumes it"
        outcome += "" if known else "; the session has no turns yet"
    value = {"session_id": session_id, "paused": True, "changed": changed}
    output.print_outcome(value, outcome, ok=changed, as_json=as_json)


def resume(session_id: SessionArgument, as_json: AsJson = False) -> None:
    """Resume a paused session.

    \b
    Examples:
      brainq resume s1
    """
    with open_brainless_client() as client:
        conversation = client.session(session_id)
        changed = conversation.is_paused()
        begun = conversation.resume()
    resumed = f"session {session_id} resumed" + (f"; turn {begun} starts" if begun else "")
    outcome = resumed if changed else f"session {session_id} was not paused"
    value = {"session_id": session_id, "paused": False, "changed": changed, "live": begun}
    output.print_outcome(value, outcome, ok=changed, as_json=as_json)


def interrupt(
    session_id: SessionArgument,
    reason: Annotated[str, typer.Option("--reason", help="Recorded with the turn and shown to people.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel the live turn of a session; the next one starts. The exit code is 5 if no turn is live.

    \b
    Examples:
      brainq interrupt s1 --reason "never mind"
    """
    with open_brainless_client() as client:
        stopped = client.session(session_id).interrupt(reason)
    outcome = f"session {session_id} has no live turn"
    if stopped:
        outcome = f"turn {stopped} will be cancelled; `brainq session {session_id}` shows which turn is next"
    value = {"session_id": session_id, "turn_id": stopped}
    output.print_outcome(value, outcome, ok=bool(stopped), exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def compact(
    session_id: SessionArgument,
    request_key: Annotated[
        str | None,
        typer.Option(
            "--request-key",
            help="A key of your choice. Repeating the command with the same key returns the first turn.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Replace a session's older messages with a summary. A separate turn does this; its id is printed.

    \b
    Examples:
      brainq compact s1
      brainq tail $(brainq compact s1)
    """
    with open_client() as client:
        handle = client.session(session_id).compact(request_key)
    if as_json:
        output.print_json({"turn_id": handle.turn_id, "session_id": session_id})
    else:
        typer.echo(handle.turn_id)


def drop(turn: TurnArgument, as_json: AsJson = False) -> None:
    """Cancel a turn that waits behind its session's live turn. If the turn has already started, it continues and the
    exit code is 8.

    \b
    Examples:
      brainq drop 01k7x2
    """
    with open_brainless_client() as client:
        handle = client.find(turn)
        dropped = client.session(handle.session_id).drop(handle.turn_id)
    outcome = f"turn {handle.turn_id} is dropped; it had not started"
    if not dropped:
        outcome = f"turn {handle.turn_id} is not waiting; `brainq cancel {handle.turn_id}` cancels a live turn"
    value = {"turn_id": handle.turn_id, "session_id": handle.session_id, "dropped": dropped}
    output.print_outcome(value, outcome, ok=dropped, exit_code=ExitCode.REFUSED, as_json=as_json)


def ready(
    session_id: SessionArgument,
    flag: Annotated[str, typer.Argument(metavar="FLAG", help="A readiness flag, as `brainq session` shows it.")],
    as_json: AsJson = False,
) -> None:
    """Release a readiness flag. The turn that waits for it continues; if none waits, the next turn does not wait.

    The exit code is 5 if the session has no such FLAG. To release a turn's own readiness hold, use `brainq steer TURN
    "" --ready`.

    \b
    Examples:
      brainq ready s1 flag-01k7x3
    """
    with open_brainless_client() as client:
        released = client.session(session_id).flag(flag).ready()
    outcome = f"{output.short(flag, 60)} is ready"
    if not released:
        outcome = (
            f"session {session_id} has no readiness flag {output.short(flag, 60)!r}; it may already have been released"
        )
    value = {"session_id": session_id, "flag": flag, "released": released}
    output.print_outcome(value, outcome, ok=released, exit_code=ExitCode.NOT_FOUND, as_json=as_json)


def history(
    session_id: SessionArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="Show at most this many turns.")] = 20,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TURN", help="The next page: turns before this one.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print a session's conversation: its newest turns, oldest first.

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
        output.print_json(turns)
        return
    if not turns:
        output.note(f"no turns of session {session_id!r}")
    console = output.stdout()
    for turn in turns:
        console.print(
            Text(turn.turn_id, "dim").append(f"  {turn.state}", output.STATUS_STYLES.get(turn.state, "")),
            soft_wrap=True,
        )
        if not turn.is_kept:
            console.print(Text("  not kept, because the brain sets redact_logs", "dim"))
            continue
        for who, text in (("user", with_attachment_labels(turn.user_message, turn.attachments)), ("brain", turn.text)):
            if text:
                console.print(Text(f"{who:<6} ", "bold").append(output.clean(text), "default"), soft_wrap=True)
        console.print()
