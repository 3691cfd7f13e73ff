"""`brainq submit`: one turn from the command line."""

from __future__ import annotations

from typing import Annotated

import typer

from brainq.cli.options import App, AsJson

TURN, QUEUE, RARE = "This turn", "Beside other turns", "Rarely needed"


def submit(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The conversation; its turns run one by one.")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="What the user says; `-` reads it from stdin.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the answer.")] = True,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show what happens while it does.")] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", min=0, help="Wait this long at most, seconds; the turn goes on.")
    ] = None,
    brain: Annotated[
        str | None,
        typer.Option("--brain", help="Which of several has it; `brainq brains` lists them.", rich_help_panel=TURN),
    ] = None,
    model: Annotated[
        str | None, typer.Option("--model", help="Another model for this turn.", rich_help_panel=TURN)
    ] = None,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limits",
            metavar="NAME=VALUE",
            help="A limit of this turn, such as max_steps=3; repeatable.",
            rich_help_panel=TURN,
        ),
    ] = None,
    options: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="How the model is asked, such as temperature=0, reasoning_effort=low; repeatable.",
            rich_help_panel=TURN,
        ),
    ] = None,
    request_key: Annotated[
        str | None,
        typer.Option(
            "--request-key", help="Sending a key again is the same turn: nothing runs twice.", rich_help_panel=QUEUE
        ),
    ] = None,
    on_busy: Annotated[
        str,
        typer.Option(
            "--on-busy",
            metavar="WORD",
            help="Where a turn of the session is live: enqueue; steer (go into it); interrupt (cancel it, run next); "
            "replace (drop those that wait, too); reject; or merge (go into the newest that waits).",
            rich_help_panel=QUEUE,
        ),
    ] = "enqueue",
    priority: Annotated[
        str,
        typer.Option(
            "--priority",
            metavar="WORD",
            help="Which turns of its tenant go first when the fleet has no room: high, normal or low.",
            rich_help_panel=QUEUE,
        ),
    ] = "normal",
    provider: Annotated[
        str | None, typer.Option("--provider", help="Another provider for this turn.", rich_help_panel=RARE)
    ] = None,
    system_prompt: Annotated[
        str | None,
        typer.Option(
            "--system-prompt",
            metavar="TEXT|@FILE",
            help="In place of the brain's; `@-` reads stdin.",
            rich_help_panel=TURN,
        ),
    ] = None,
    skill_context: Annotated[
        str | None,
        typer.Option(
            "--skill-context", metavar="TEXT|@FILE", help="Stands behind the system prompt.", rich_help_panel=RARE
        ),
    ] = None,
    output_schema: Annotated[
        str | None,
        typer.Option(
            "--output-schema", metavar="JSON|@FILE", help="The JSON schema of the answer.", rich_help_panel=TURN
        ),
    ] = None,
    attach: Annotated[
        list[str] | None,
        typer.Option(
            "--attach", metavar="FILE", help="An image or a file of the message; repeatable.", rich_help_panel=TURN
        ),
    ] = None,
    metadata: Annotated[
        str | None,
        typer.Option(
            "--metadata", metavar="JSON|@FILE", help="An object of yours; callbacks get it back.", rich_help_panel=TURN
        ),
    ] = None,
    kind: Annotated[
        str, typer.Option("--kind", help="chat; review (a history of its own); or compact.", rich_help_panel=RARE)
    ] = "chat",
    seed: Annotated[
        str, typer.Option("--seed", help="What a review begins with: session, or empty.", rich_help_panel=RARE)
    ] = "session",
    prompt_id: Annotated[
        str | None,
        typer.Option("--prompt-id", help="A prompt of the brain's; it names judges, too.", rich_help_panel=RARE),
    ] = None,
    prompt_version: Annotated[
        str | None, typer.Option("--prompt-version", help="Kept with the turn.", rich_help_panel=RARE)
    ] = None,
    prompt_tags: Annotated[
        list[str] | None, typer.Option("--prompt-tag", help="Kept with the turn; repeatable.", rich_help_panel=TURN)
    ] = None,
    cwd: Annotated[
        str | None, typer.Option("--cwd", help="Handed to tools as `context.cwd`.", rich_help_panel=RARE)
    ] = None,
    citations: Annotated[
        bool | None,
        typer.Option("--citations/--no-citations", help="Show sources under the answer, or not.", rich_help_panel=RARE),
    ] = None,
    ready: Annotated[
        bool | None,
        typer.Option(
            "--ready/--not-ready",
            help="Not ready: changes wait for `brainq steer TURN '' --ready`.",
            rich_help_panel=RARE,
        ),
    ] = None,
    as_json: AsJson = False,
    app: App = "",
) -> None:
    """Submit a turn, and print its answer.

    The answer goes to stdout, a line about the turn to stderr.

    \b
    Examples:
      brainq submit s1 "Tidy my notes" --follow
      brainq submit s1 "Tidy my notes" --no-wait           prints the turn's id
      brainq submit s1 "Charge order 4711" --request-key order-4711
      brainq submit s1 "Research this" --limits max_steps=40 --limits timeout_s=900
      brainq submit s1 "No, the blue one" --on-busy steer
      brainq submit s1 "Sum up March" --output-schema @sum.json --metadata '{"month": 3}'
      brainq submit s1 - --attach plan.png < question.txt

    The exit code says how the turn ended: `brainq --help` lists them.
    """
    from brainq.cli.actions.submit import submit_and_wait
    from brainq.cli.options import read_files, read_json_object, read_text

    fields = {
        "request_key": request_key,
        "brain": brain,
        "model": model,
        "provider": provider,
        "system_prompt": None if system_prompt is None else read_text(system_prompt, "--system-prompt"),
        "skill_context": None if skill_context is None else read_text(skill_context, "--skill-context"),
        "output_schema": None if output_schema is None else read_json_object(output_schema, "--output-schema"),
        "metadata": None if metadata is None else read_json_object(metadata, "--metadata"),
        "cwd": cwd,
        "show_citations": citations,
        "prompt_id": prompt_id,
        "prompt_version": prompt_version,
        "prompt_tags": prompt_tags or [],
        "on_busy": on_busy,
        "priority": priority,
        "kind": kind,
        "seed": seed,
        "readiness": ready,
        "attachments": read_files(attach or []),
    }

    code = submit_and_wait(
        session,
        message,
        wait=wait,
        follow=follow,
        timeout_s=timeout_s,
        limits=limits or [],
        options=options or [],
        fields=fields,
        as_json=as_json,
    )
    raise typer.Exit(code)
