"""`brainq finalize retry`: run again what the finalizer gave up."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated

import typer

from brainq.cli.help import command_group, subcommand
from brainq.cli.options import AsJson, TurnArgument
from brainq.errors import ExitCode

app = command_group("What happens after the answer.")


@subcommand(app, "retry")
def retry(
    turn: TurnArgument,
    step: Annotated[
        str,
        typer.Argument(
            metavar="STEP", help="A step, `judge:NAME`, or `judges`; by default all that is dead.", show_default=False
        ),
    ] = "",
    as_json: AsJson = False,
) -> None:
    """Run finalizer steps and judgements of a turn again that were given up.

    Runs them here, with the brain of BRAINQ_APP, also after Redis has let the turn go. What a step writes to SQL
    is written once, whichever process tries; callbacks get the step key they had before. The exit code is 1 if
    something failed again. --json prints one object a step, or [] when nothing is dead.

    \b
    Examples:
      brainq finalize retry 01k7x2                     every dead step and judgement
      brainq finalize retry 01k7x2 memory              one step
      brainq finalize retry 01k7x2 judge:relevance     one judgement
      brainq finalize retry 01k7x2 judges              every dead judgement
    """
    from brainq.brain.loading import load_brains
    from brainq.cli.output import clean, note, print_json
    from brainq.observe.otel_setup import start_traces
    from brainq.operator.operator import Operator
    from brainq.settings.deployment import load_settings

    failed = False
    settings = load_settings()
    with ExitStack() as after, Operator(settings, load_brains(settings.app)) as operator:
        after.callback(start_traces("retry"))
        row = operator.find(turn)
        wanted = operator.given_up(row.turn_id, step)
        if not wanted and as_json:
            print_json([])
        elif not wanted:
            note(f"nothing of turn {row.turn_id} is dead; there is nothing to retry", style="green")
        for name in wanted:
            if not as_json:
                note(f"{name}: running ...", style="dim")
            again = operator.retry(row.turn_id, name)
            failed = failed or again.word == "failed"
            if as_json:
                print_json({"turn_id": row.turn_id, "step": name, "outcome": again.word, "error": again.error})
                continue
            outcome = {"done": "done", "taken": "a worker has taken it up", "failed": "failed again"}[again.word]
            why = f": {clean(again.error, lines=False)}" if again.error else ""
            note(f"{name}: {outcome}{why}", style="red" if again.word == "failed" else "green")
    raise typer.Exit(ExitCode.FAILED if failed else ExitCode.OK)
