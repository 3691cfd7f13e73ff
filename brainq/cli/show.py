"""`brainq show`: everything that is known of one turn, or of one of its calls."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson, TurnArgument


def show(
    turn: TurnArgument,
    timeline: Annotated[
        bool, typer.Option("--timeline", "-t", help="Its steps, calls and waits as bars over time.")
    ] = False,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Show a turn: what happened, what happens next and why.

    Its state, its calls with their arguments and results, what it used of its budget, who has it, retries of the
    model, and the intents that SQL keeps of calls that write; what people are asked and how to answer, the holds on
    it, and what was sent into it; once it is over, what each model call cost, its finalizer's steps, how it was
    judged, and what was first learned in it. Works also for turns that only SQL still knows. A brain with
    `redact_logs` keeps no arguments and results of ended turns.

    TURN-CALL, such as 01k7x2-c1-0, shows one call alone, its arguments and result whole.

    \b
    Examples:
      brainq show 01k7x2
      brainq show order-4711              a request key
      brainq show 01k7x2 --timeline
      brainq show 01k7x2 --json
      brainq show 01k7x2-c1-0             one call
    """
    from brainq.cli.bars import print_bars
    from brainq.cli.call_page import print_call
    from brainq.cli.output import print_json, stdout
    from brainq.cli.reach import observer
    from brainq.cli.turn_page import print_page

    with observer() as seen:
        if timeline:
            bars = seen.timeline(turn)
            if as_json:
                print_json(bars.model_dump(mode="json"))
            else:
                print_bars(stdout(), bars)
            return
        call = seen.call(turn)
        facts = None if call else seen.facts(turn)
    if as_json:
        print_json(call.model_dump(mode="json") if call else facts.as_json() if facts else None)
    elif call:
        print_call(stdout(), call)
    elif facts:
        print_page(stdout(), facts)
