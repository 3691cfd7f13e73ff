"""`brainq session`, `pause` and `resume`: one conversation's queue of turns."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson

SessionArgument = Annotated[str, typer.Argument(metavar="SESSION", help="A session's id.")]


def session(session_id: SessionArgument, as_json: AsJson = False, app: App = "") -> None:
    """Show a session: what is live, and what waits.

    Also whether it is paused, which readiness flags no turn has taken, and what people are asked.

    \b
    Examples:
      brainq session s1
      brainq session s1 --json
    """
    from brainq.cli.output import print_json, stdout
    from brainq.cli.reach import operator
    from brainq.cli.session_page import collect_session, print_session

    with operator() as client:
        facts = collect_session(client, session_id)
    if as_json:
        print_json(facts.as_json())
    else:
        print_session(stdout(), facts)


def pause(
    session_id: SessionArgument,
    reason: Annotated[
        str, typer.Option("--reason", help="For people: `brainq show` of a turn that waits says it.")
    ] = "",
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Let no further turn of a session begin. A live one goes on, and submits are queued.

    \b
    Examples:
      brainq pause s1
      brainq pause s1 --reason "Mia looks into the double booking"
      brainq resume s1                    lets them begin again
    """
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import operator

    with operator() as client:
        changed = client.session(session_id).pause(reason)
        known = bool(client.session(session_id).history(1))
    if as_json:
        print_json({"session_id": session_id, "paused": True, "changed": changed})
    else:
        say(
            f"session {session_id} is paused; `brainq resume {session_id}` lets its turns begin again"
            + ("" if known else "; no turn of it is known yet")
            if changed
            else f"session {session_id} was paused before, and stays so",
            style="green" if changed else "yellow",
        )


def resume(session_id: SessionArgument, as_json: AsJson = False, app: App = "") -> None:
    """Let the turns of a paused session begin again.

    \b
    Examples:
      brainq resume s1
    """
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import operator

    with operator() as client:
        found = client.session(session_id)
        changed = found.is_paused()
        begun = found.resume()
    if as_json:
        print_json({"session_id": session_id, "paused": False, "changed": changed, "live": begun})
    elif changed:
        say(f"session {session_id} goes on" + (f" with turn {begun}" if begun else ""), style="green")
    else:
        say(f"session {session_id} was not paused", style="yellow")
