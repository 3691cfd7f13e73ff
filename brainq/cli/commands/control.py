"""`brainq steer`, `hold`, `release` and `cancel`: send input into a running turn, hold it back, or stop it."""

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
        str,
        typer.Argument(
            metavar="TEXT", help="The input that the model reads at its next step; `-` reads it from stdin."
        ),
    ],
    message_id: Annotated[
        str | None, typer.Option("--id", help="An id for this input. Sending the same id again has no effect.")
    ] = None,
    expect: Annotated[
        str | None, typer.Option("--expect", metavar="TURN", help="Send only if this is the session's live turn.")
    ] = None,
    ready: Annotated[
        bool | None,
        typer.Option(
            "--ready/--not-ready", help="Also release (or set) the turn's readiness hold. TEXT may then be ''."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Send follow-up input into a turn.

    Prints the receipt. It is `accepted` at first, and later `consumed` by the step that `brainq show` names. If the
    turn had already ended, the receipt is `bounced`: the input became a new turn, whose id is printed.

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
    reason: Annotated[str, typer.Option("--reason", help="Shown to people by `brainq show` and in events.")] = "",
    expires_in_s: Annotated[float, typer.Option("--expires-in-s", help="Seconds until the hold expires.")] = 3_600,
    on_expiry: Annotated[
        str,
        typer.Option(
            "--on-expiry",
            help="What happens when the hold expires: deny the waiting calls, release them, or cancel the turn.",
        ),
    ] = "deny",
    as_json: AsJson = False,
) -> None:
    """Hold a turn: reads continue, calls with effects wait.

    No call with an effect starts until the hold is released or expires. Prints the hold's id for `brainq release`. A
    turn may have several holds.

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
    note(f"turn {placed.turn_id} is held; `brainq release {placed.turn_id} {placed.id}` releases it", "green")


def release(
    turn: TurnArgument,
    hold_id: Annotated[
        str, typer.Argument(metavar="HOLD", help="A hold's id or the beginning of one; `all` releases every hold.")
    ],
    as_json: AsJson = False,
) -> None:
    """Release a hold, or a readiness flag that the turn uses.

    The waiting calls start once no hold is open. The exit code is 5 if HOLD is not open; with `all` it is always 0.

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
            raise InvalidInput("HOLD", f"several holds begin with {hold_id!r}: {', '.join(meant)}; give more of the id")
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
        here = f"its open holds: {', '.join(standing) or 'none'}"
        note(f"turn {handle.turn_id} has no open hold {short(hold_id, 60)!r}; {here}", "red")
    if not released and hold_id != "all":
        raise typer.Exit(ExitCode.NOT_FOUND)


def cancel(
    turn: TurnArgument,
    reason: Annotated[str, typer.Option("--reason", help="Recorded with the turn and shown to people.")] = "",
    as_json: AsJson = False,
) -> None:
    """Cancel a turn. The request is durable: it survives this command and every worker.

    A queued turn ends at once. A live turn ends when its coordinator sees the request, and its running calls are cut
    off.

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
        "cancelled": "is cancelled; it had not started",
        "requested": f"will be cancelled; `brainq show {handle.turn_id}` shows when it has ended",
        "ended": f"has already ended{f' as {ended}' if ended else ''}; nothing to cancel",
        "unknown": "is accepted but not yet in Redis; try again in a few seconds",
    }[word]
    value = {"turn_id": handle.turn_id, "session_id": handle.session_id, "cancel": word}
    ok = word in ("cancelled", "requested")
    print_outcome(value, f"turn {handle.turn_id} {meaning}", ok=ok, as_json=as_json)


def _ending(handle: TurnHandle) -> str:
    """Return how the turn ended, or "" if its result is not available yet. Raises TurnRejected if it never ran."""
    try:
        return handle.result(timeout_s=0).ending.value
    except ResultTimeout:
        return ""
