"""`brainq steer`, `hold`, `release` and `cancel`: input into a turn that runs, and how to stop it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from brainq.cli.connect import open_brainless_client, open_client
from brainq.cli.options import AsJson, TurnArgument
from brainq.cli.output import note, print_json, print_outcome, short
from brainq.errors import ExitCode, InvalidInput, ResultTimeout

if TYPE_CHECKING:
    from brainq.client.handle import TurnHandle


def steer(
    turn: TurnArgument,
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="What the model reads at its next step; `-` reads it from stdin.")
    ],
    message_id: Annotated[
        str | None, typer.Option("--id", help="Sending an id again is the same message: it is read once.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="TURN", help="Only if this is its session's live turn.")
    ] = None,
    ready: Annotated[
        bool | None,
        typer.Option("--ready/--not-ready", help="Lift or set the turn's readiness hold, too; TEXT may then be ''."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send follow-up input into a turn. Its task stays the same.

    Prints what became of it: `accepted`, then `consumed` by a step, which `brainq show` names; or `bounced`, when the
    turn was over: the input is a turn of its own then, and its id is printed.

    \b
    Examples:
      brainq steer 01k7x2 "Do not touch the archive"
      brainq steer 01k7x2 "Use the blue one" --id msg-17 --expect 01k7x2
      brainq steer 01k7x2 "" --ready
    """
    from brainq.cli.pages.people import describe_receipt

    if text == "-":
        text = sys.stdin.read()
    with open_client() as client:
        expected = None if expect is None else client.find(expect).turn_id
        receipt = client.find(turn).steer(
            text, client_message_id=message_id, readiness=ready, expected_turn_id=expected
        )
    outcome = f"input {receipt.client_message_id} {describe_receipt(receipt)}"
    print_outcome(receipt, outcome, ok=receipt.state != "refused", as_json=as_json)


def hold(
    turn: TurnArgument,
    reason: Annotated[str, typer.Option("--reason", help="For people; `brainq show` and events have it.")] = "",
    expires_in_s: Annotated[float, typer.Option("--expires-in-s", help="Seconds until it expires.")] = 3_600,
    on_expiry: Annotated[
        str, typer.Option("--on-expiry", help="Then: deny the calls that wait, release them, or cancel the turn.")
    ] = "deny",
    as_json: AsJson = False,
) -> None:
    """Hold a turn: reads go on, changes wait.

    No call that changes something starts until the hold is released, or its time is up. Prints the hold's id, for
    `brainq release`. A turn may have several holds.

    \b
    Examples:
      brainq hold 01k7x2 --reason "looking at its plan"
      brainq hold 01k7x2 --expires-in-s 600 --on-expiry cancel
    """
    from brainq.contracts.people import HoldPolicy

    with open_client() as client:
        placed = client.find(turn).hold(reason, expires_in_s=expires_in_s, on_expiry=cast("HoldPolicy", on_expiry))
    if as_json:
        print_json({"turn_id": placed.turn_id, "session_id": placed.session_id, "hold": placed.id})
        return
    typer.echo(placed.id)
    note(f"turn {placed.turn_id} is held; `brainq release {placed.turn_id} {placed.id}` lets it go", "green")


def release(
    turn: TurnArgument,
    hold_id: Annotated[
        str, typer.Argument(metavar="HOLD", help="A hold's id or its beginning; `all` releases every one.")
    ],
    as_json: AsJson = False,
) -> None:
    """Release a hold, or a readiness flag that the turn has taken.

    Calls that waited go on when no other hold is open. A HOLD that is not open is exit code 5; `all` of none is 0.

    \b
    Examples:
      brainq release 01k7x2 hold-01k7x3
      brainq release 01k7x2 all
    """
    with open_brainless_client() as client:
        handle = client.find(turn)
        standing = [hold.id for hold in handle.holds()]
        meant = [each for each in standing if hold_id == "all" or each.startswith(hold_id)]
        if hold_id in standing:
            meant = [hold_id]
        elif hold_id != "all" and len(meant) > 1:
            raise InvalidInput("HOLD", f"several holds begin with {hold_id!r}: {', '.join(meant)}; give more of it")
        released = [each for each in meant if handle.release(each)]
        left = len(handle.holds())
    if as_json:
        print_json({"turn_id": handle.turn_id, "released": released, "left": left})
    elif released:
        others = f"; {left} more {'is' if left == 1 else 'are'} open" if left else ""
        note(f"released {', '.join(released)}{others}", "yellow" if left else "green")
    elif hold_id == "all":
        note(f"turn {handle.turn_id} has no hold", "yellow")
    else:
        here = f"it has {', '.join(standing) or 'none'}"
        note(f"turn {handle.turn_id} has no such hold as {short(hold_id, 60)!r}, or no more; {here}", "red")
    if not released and hold_id != "all":
        raise typer.Exit(ExitCode.NOT_FOUND)


def cancel(
    turn: TurnArgument,
    reason: Annotated[str, typer.Option("--reason", help="Kept with the turn, for people.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel a turn. The wish outlives this command and every worker.

    A queued turn ends at once; a live one ends as soon as its coordinator sees the wish, and its running calls
    are cut off.

    \b
    Examples:
      brainq cancel 01k7x2
      brainq cancel order-4711 --reason "the customer changed her mind"
    """
    with open_client() as client:
        handle = client.find(turn)
        word: str = handle.cancel(reason)
        ended = _ending(handle) if word == "ended" else ""
        if word == "ended" and not ended and handle.snapshot() is None:
            word = "unknown"
    meaning = {
        "cancelled": "is cancelled; it had not begun",
        "requested": f"will be cancelled; `brainq show {handle.turn_id}` says when it is",
        "ended": f"has ended already{f' as {ended}' if ended else ''}; nothing to cancel",
        "unknown": "is accepted but not in Redis yet; try again in a few seconds",
    }[word]
    value = {"turn_id": handle.turn_id, "session_id": handle.session_id, "cancel": word}
    ok = word in ("cancelled", "requested")
    print_outcome(value, f"turn {handle.turn_id} {meaning}", ok=ok, as_json=as_json)


def _ending(handle: TurnHandle) -> str:
    """ "" while its result is not out. Raises TurnRejected for a turn that never ran."""
    try:
        return handle.result(timeout_s=0).ending.value
    except ResultTimeout:
        return ""
