"""`brainq cancel`: ask for a turn to be cancelled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from brainq.cli.options import App, AsJson, TurnArgument

if TYPE_CHECKING:
    from brainq.client.handle import TurnHandle


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
    from brainq.cli.reach import producer

    with producer() as client:
        handle = client.find(turn)
        word: str = handle.cancel(reason)
        ended = _ending(handle) if word == "ended" else ""
        if word == "ended" and not ended and handle.snapshot() is None:
            word = "unknown"
    if as_json:
        print_json({"turn_id": handle.turn_id, "session_id": handle.session_id, "cancel": word})
        return
    say(
        {
            "cancelled": f"turn {handle.turn_id} is cancelled; it had not begun",
            "requested": f"turn {handle.turn_id} will be cancelled; `brainq show {handle.turn_id}` says when it is",
            "ended": f"turn {handle.turn_id} has ended already{f' as {ended}' if ended else ''}; nothing to cancel",
            "unknown": f"turn {handle.turn_id} is accepted but not in Redis yet; try again in a few seconds",
        }[word],
        style="green" if word in ("cancelled", "requested") else "yellow",
    )


def _ending(handle: TurnHandle) -> str:
    """ "" while its result is not out. Raises TurnRejected for a turn that never ran."""
    from brainq.errors import ResultTimeout

    try:
        return handle.result(timeout_s=0).ending.value
    except ResultTimeout:
        return ""
