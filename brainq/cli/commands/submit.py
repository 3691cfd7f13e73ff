"""`brainq submit`: one turn from the command line."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from brainq.cli.options import AsJson

OF_TURN = partial(typer.Option, rich_help_panel="This turn")
BESIDE = partial(typer.Option, rich_help_panel="Beside other turns")
RARE = partial(typer.Option, rich_help_panel="Rarely needed")


def submit(
    session: Annotated[str, typer.Argument(metavar="SESSION", help="The conversation; its turns run one by one.")],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="What the user says; `-` reads it from stdin.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the answer.")] = True,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show what happens while it does.")] = False,
    timeout_s: Annotated[
        float | None, typer.Option("--timeout-s", min=0, help="Wait this long at most, seconds; the turn goes on.")
    ] = None,
    brain: Annotated[
        str | None, OF_TURN("--brain", help="Which of several has it; `brainq brains` lists them.")
    ] = None,
    model: Annotated[str | None, OF_TURN("--model", help="Another model for this turn.")] = None,
    limits: Annotated[
        list[str] | None,
        OF_TURN("--limits", metavar="NAME=VALUE", help="A limit of this turn, such as max_steps=3; repeatable."),
    ] = None,
    options: Annotated[
        list[str] | None,
        OF_TURN(
            "--option",
            metavar="NAME=VALUE",
            help="How the model is asked, such as temperature=0, reasoning_effort=low; repeatable.",
        ),
    ] = None,
    request_key: Annotated[
        str | None, BESIDE("--request-key", help="Sending a key again is the same turn: nothing runs twice.")
    ] = None,
    on_busy: Annotated[
        str,
        BESIDE(
            "--on-busy",
            metavar="WORD",
            help="Where a turn of the session is live: enqueue; steer (go into it); interrupt (cancel it, run next); "
            "replace (drop those that wait, too); reject; or merge (go into the newest that waits).",
        ),
    ] = "enqueue",
    priority: Annotated[
        str,
        BESIDE(
            "--priority",
            metavar="WORD",
            help="Which turns of its tenant go first when the fleet has no room: high, normal or low.",
        ),
    ] = "normal",
    provider: Annotated[str | None, RARE("--provider", help="Another provider for this turn.")] = None,
    system_prompt: Annotated[
        str | None, OF_TURN("--system-prompt", metavar="TEXT|@FILE", help="In place of the brain's; `@-` reads stdin.")
    ] = None,
    skill_context: Annotated[
        str | None, RARE("--skill-context", metavar="TEXT|@FILE", help="Comes behind the system prompt.")
    ] = None,
    output_schema: Annotated[
        str | None, OF_TURN("--output-schema", metavar="JSON|@FILE", help="The JSON schema of the answer.")
    ] = None,
    attach: Annotated[
        list[str] | None, OF_TURN("--attach", metavar="FILE", help="An image or a file of the message; repeatable.")
    ] = None,
    metadata: Annotated[
        str | None, OF_TURN("--metadata", metavar="JSON|@FILE", help="An object of yours; callbacks get it back.")
    ] = None,
    kind: Annotated[str, RARE("--kind", help="chat; review (a history of its own); or compact.")] = "chat",
    seed: Annotated[str, RARE("--seed", help="What a review begins with: session, or empty.")] = "session",
    prompt_id: Annotated[str | None, RARE("--prompt-id", help="A prompt of the brain's; it names judges, too.")] = None,
    prompt_version: Annotated[str | None, RARE("--prompt-version", help="Kept with the turn.")] = None,
    prompt_tags: Annotated[list[str] | None, OF_TURN("--prompt-tag", help="Kept with the turn; repeatable.")] = None,
    cwd: Annotated[str | None, RARE("--cwd", help="Handed to tools as `context.cwd`.")] = None,
    citations: Annotated[
        bool | None, RARE("--citations/--no-citations", help="Show sources under the answer, or not.")
    ] = None,
    ready: Annotated[
        bool | None, RARE("--ready/--not-ready", help="Not ready: changes wait for `brainq steer TURN '' --ready`.")
    ] = None,
    as_json: AsJson = False,
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
