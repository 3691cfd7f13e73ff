"""`brainq complete` and `fail`: the result of a call that waits for somebody outside."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson

Token = Annotated[
    str,
    typer.Argument(
        metavar="TOKEN", help="What the tool gave away; `@FILE` or `@-` (stdin) keeps it out of `ps`."
    ),
]


def complete(
    token: Token,
    result: Annotated[
        str, typer.Argument(metavar="JSON|@FILE", help="The result, as JSON; `@-` reads stdin.")
    ] = "null",
    partial: Annotated[bool, typer.Option("--partial", help="It is a part of what was asked for.")] = False,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Give its result to a call that waits for one from outside. It is taken once.

    \b
    Examples:
      brainq complete @token.txt '{"approved": true}'
      brainq complete @token.txt @result.json --partial
      brainq complete 5f1c... '"done"'
    """
    from brainq.cli.given import json_of, text_of
    from brainq.cli.reach import operator

    with operator() as client:
        taken = client.complete_call(
            text_of(token, "TOKEN").strip(), json_of(result, "RESULT"), partial=partial
        )
    _say(taken, as_json)


def fail(
    token: Token,
    error: Annotated[
        str, typer.Argument(metavar="ERROR", help="The model reads it; `@FILE` or `@-` reads it.")
    ],
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Say that a call failed that waits for a result from outside.

    \b
    Examples:
      brainq fail @token.txt "the courier lost it"
    """
    from brainq.cli.given import text_of
    from brainq.cli.reach import operator

    with operator() as client:
        taken = client.fail_call(text_of(token, "TOKEN").strip(), text_of(error, "ERROR"))
    _say(taken, as_json)


def _say(taken: str, as_json: bool) -> None:
    from brainq.cli.output import print_json, say

    if as_json:
        print_json({"taken": taken})
        return
    said = {
        "settled": "the call has it, and its turn goes on",
        "early": "its tool has not returned yet; the call gets it when it does",
        "late": "nobody waits for it any more; that it came is kept",
    }
    say(f"{taken}: {said[taken]}", style="yellow" if taken == "late" else "green")
