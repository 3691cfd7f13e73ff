"""`brainq cancel`: ask for a turn to be cancelled."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson, TurnArgument


def cancel(
    turn: TurnArgument,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the turn, for people.")] = "",
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Cancel a turn. The wish outlives this command and every worker.

    A queued turn ends at once; a live one ends as soon as its coordinator sees the wish, and its running calls
    are cut off.

    \b
    Examples:
      brainq cancel 01k7x2
      brainq cancel order-4711 --reason "the customer changed her mind"
    """
    from brainq.cli.output import print_json, say
    from brainq.cli.reach import find_turn, producer
    from brainq.errors import TurnRejected

    with producer() as client:
        row = find_turn(client.wiring.store, turn)
        if row.state == "rejected":
            raise TurnRejected(f"turn {row.turn_id} was rejected and never ran: {row.reject_reason}")
        word = client.cancel(row.session_id, row.turn_id, reason)
        ended = row.ending.value if row.ending else ""
        if (
            word == "ended"
            and not ended
            and not client.wiring.state.events.known(row.session_id, row.turn_id)
        ):
            word = "unknown"
    if as_json:
        print_json({"turn_id": row.turn_id, "session_id": row.session_id, "cancel": word})
        return
    say(
        {
            "cancelled": f"turn {row.turn_id} is cancelled; it had not begun",
            "requested": f"turn {row.turn_id} will be cancelled; `brainq show {row.turn_id}` says when it is",
            "ended": f"turn {row.turn_id} has ended already{f' as {ended}' if ended else ''}; nothing to cancel",
            "unknown": f"turn {row.turn_id} is accepted but not in Redis yet; try again in a few seconds",
        }[word],
        style="green" if word in ("cancelled", "requested") else "yellow",
    )
