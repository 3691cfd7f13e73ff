"""`brainq submit`: one turn from the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson


def submit(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The conversation; its turns run one by one.")
    ],
    message: Annotated[
        str, typer.Argument(metavar="MESSAGE", help="What the user says; `-` reads it from stdin.")
    ],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the answer.")] = True,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show what happens while it does.")] = False,
    timeout_s: Annotated[
        float | None,
        typer.Option("--timeout-s", min=0, help="Wait this long at most, seconds; the turn goes on."),
    ] = None,
    request_key: Annotated[
        str | None,
        typer.Option("--request-key", help="Sending a key again is the same turn: nothing runs twice."),
    ] = None,
    model: Annotated[str | None, typer.Option("--model", help="Another model for this turn.")] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limits", metavar="NAME=VALUE", help="A limit of this turn, such as max_steps=3; repeatable."
        ),
    ] = None,
    on_busy: Annotated[
        str,
        typer.Option(
            "--on-busy",
            metavar="WORD",
            help="When the session has a live turn: enqueue, steer, interrupt, replace, reject or merge.",
        ),
    ] = "enqueue",
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Submit a turn, and print its answer.

    The answer goes to stdout, a line about the turn to stderr.

    \b
    A session with a live turn (--on-busy):
      enqueue     wait in order
      steer       go into the live turn as follow-up input
      interrupt   cancel the live turn, and run next
      replace     the same, and drop the turns that wait
      reject      refuse, with exit code 8
      merge       go into the newest turn that waits
    With steer and merge the answer is that of the turn the message went into.

    \b
    Examples:
      brainq submit s1 "What is on my list?"
      brainq submit s1 "Tidy my notes" --follow
      brainq submit s1 "Tidy my notes" --no-wait           prints the turn's id
      brainq submit s1 "Charge order 4711" --request-key order-4711
      brainq submit s1 "Research this" --limits max_steps=3 --limits timeout_s=60
      brainq submit s1 "No, the blue one" --on-busy steer
      brainq submit s1 - < question.txt
    """
    from brainq.cli.submitting import submit_and_wait

    code = submit_and_wait(
        session,
        message,
        wait=wait,
        follow=follow,
        timeout_s=timeout_s,
        request_key=request_key,
        model=model,
        limits=limits or [],
        on_busy=on_busy,
        as_json=as_json,
    )
    raise typer.Exit(code)
