"""`brainq list`: the newest turns."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson


def list_turns(
    session: Annotated[str | None, typer.Option("--session", "-s", help="Only this session's.")] = None,
    state: Annotated[
        str | None,
        typer.Option(
            "--state",
            help="queued, active, parked, closing, accepted (any of these), or an ending, or rejected.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=10_000, help="At most so many.")] = 20,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """List turns, the newest first.

    They come from SQL, with what Redis says of those that have not ended.

    \b
    Examples:
      brainq list
      brainq list --session s1 --state failed
      brainq list --state accepted --json
    """
    from brainq.cli.output import print_json, say, stdout
    from brainq.cli.reach import observer
    from brainq.cli.turn_rows import as_table
    from brainq.operator.listed import checked_state

    checked_state(state)
    with observer() as seen:
        rows = seen.turns(session, state, limit)
        if seen.why_away:
            say(f"Redis is away, this is what SQL knows: {seen.why_away}", style="yellow")
    if as_json:
        print_json([row.as_json() for row in rows])
    elif not rows:
        say(
            "no turns"
            + (f" of session {session!r}" if session else "")
            + (f" in state {state!r}" if state else "")
        )
    else:
        stdout().print(as_table(rows))
