"""`brainq tail`: a turn's events, live."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson, TurnArgument


def tail(
    turn: TurnArgument,
    after: Annotated[int, typer.Option("--after", min=0, help="Begin behind this event number.")] = 0,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Follow a turn's events to the final one.

    \b
    Examples:
      brainq tail 01k7x2
      brainq tail order-4711              a request key
      brainq tail 01k7x2 --after 12 --json
    """
    from brainq.cli.follow import follow
    from brainq.cli.output import say
    from brainq.cli.reach import observer

    with observer() as seen:
        row = seen.find(turn)
        client = seen.client
        if row.state == "rejected":
            say(f"turn {row.turn_id} was rejected: {row.reject_reason}", style="yellow")
            return
        if not follow(client.handle(row.turn_id), after=after, as_json=as_json).final:
            say(
                f"the events of turn {row.turn_id} are no longer in Redis; `brainq show` tells what SQL kept",
                style="yellow",
            )
