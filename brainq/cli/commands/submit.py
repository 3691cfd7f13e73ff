"""`brainq submit`: submit a turn, then wait for its answer or follow its events."""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from brainq.cli.connect import open_client
from brainq.cli.options import AsJson, read_files, read_json_object, read_text
from brainq.cli.output import STATUS_STYLES, clean, counted, duration, note, print_json, stderr, stdout
from brainq.cli.waiting import follow_events, note_older_workers, wait_for_result
from brainq.contracts.descriptions import TURN_OPTIONS
from brainq.contracts.status import Ending
from brainq.errors import ExitCode, InvalidInput, ResultTimeout, Unreachable

if TYPE_CHECKING:
    from brainq.client.handle import TurnHandle
    from brainq.contracts.turn import TurnResult

OF_TURN = partial(typer.Option, rich_help_panel="This turn")
BESIDE = partial(typer.Option, rich_help_panel="Together with other turns")
RARE = partial(typer.Option, rich_help_panel="Rarely needed")
TEXT_OPTIONS = ("tool_choice", "reasoning_effort")  # options whose value stays text even if it looks like a number
EXIT_OF_ENDING = {
    Ending.COMPLETED: ExitCode.OK,
    Ending.FAILED: ExitCode.FAILED,
    Ending.TIMED_OUT: ExitCode.TIMED_OUT,
    Ending.CANCELLED: ExitCode.CANCELLED,
}


def submit(
    session: Annotated[
        str, typer.Argument(metavar="SESSION", help="The id of the conversation. Its turns run one after another.")
    ],
    message: Annotated[str, typer.Argument(metavar="MESSAGE", help="The user's message; `-` reads it from stdin.")],
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the answer.")] = True,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Print the turn's events while waiting.")] = False,
    timeout_s: Annotated[
        float | None,
        typer.Option("--timeout-s", min=0, help="Stop waiting after this many seconds. The turn continues."),
    ] = None,
    brain: Annotated[
        str | None, OF_TURN("--brain", help="The brain that runs the turn; `brainq brains` lists them.")
    ] = None,
    model: Annotated[str | None, OF_TURN("--model", help=TURN_OPTIONS["model"])] = None,
    limits: Annotated[
        list[str] | None,
        OF_TURN("--limits", metavar="NAME=VALUE", help="A limit of this turn, such as max_steps=3; repeatable."),
    ] = None,
    options: Annotated[
        list[str] | None,
        OF_TURN(
            "--option",
            metavar="NAME=VALUE",
            help="A model option, such as temperature=0 or reasoning_effort=low; repeatable.",
        ),
    ] = None,
    request_key: Annotated[
        str | None,
        BESIDE("--request-key", help="A key of your choice. Using it again returns the first turn."),
    ] = None,
    on_busy: Annotated[
        str,
        BESIDE(
            "--on-busy",
            metavar="WORD",
            help=TURN_OPTIONS["on_busy"],
        ),
    ] = "enqueue",
    priority: Annotated[
        str,
        BESIDE(
            "--priority",
            metavar="WORD",
            help=TURN_OPTIONS["priority"],
        ),
    ] = "normal",
    provider: Annotated[str | None, RARE("--provider", help=TURN_OPTIONS["provider"])] = None,
    system_prompt: Annotated[
        str | None,
        OF_TURN(
            "--system-prompt", metavar="TEXT|@FILE", help="A system prompt instead of the brain's; `@-` reads stdin."
        ),
    ] = None,
    skill_context: Annotated[
        str | None, RARE("--skill-context", metavar="TEXT|@FILE", help=TURN_OPTIONS["skill_context"])
    ] = None,
    output_schema: Annotated[
        str | None, OF_TURN("--output-schema", metavar="JSON|@FILE", help=TURN_OPTIONS["output_schema"])
    ] = None,
    attach: Annotated[
        list[str] | None,
        OF_TURN("--attach", metavar="FILE", help="An image or file to attach; repeatable."),
    ] = None,
    metadata: Annotated[str | None, OF_TURN("--metadata", metavar="JSON|@FILE", help=TURN_OPTIONS["metadata"])] = None,
    kind: Annotated[str, RARE("--kind", help=TURN_OPTIONS["kind"])] = "chat",
    seed: Annotated[str, RARE("--seed", help=TURN_OPTIONS["seed"])] = "session",
    prompt_id: Annotated[str | None, RARE("--prompt-id", help=TURN_OPTIONS["prompt_id"])] = None,
    prompt_version: Annotated[str | None, RARE("--prompt-version", help=TURN_OPTIONS["prompt_version"])] = None,
    prompt_tags: Annotated[list[str] | None, OF_TURN("--prompt-tag", help=TURN_OPTIONS["prompt_tags"])] = None,
    cwd: Annotated[str | None, RARE("--cwd", help=TURN_OPTIONS["cwd"])] = None,
    citations: Annotated[bool | None, RARE("--citations/--no-citations", help=TURN_OPTIONS["show_citations"])] = None,
    ready: Annotated[
        bool | None,
        RARE(
            "--ready/--not-ready",
            help="With --not-ready, calls with effects wait until you run `brainq steer TURN '' --ready`.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Submit a turn and print its answer.

    The answer goes to stdout, and a line about the turn to stderr.

    \b
    Examples:
      brainq submit s1 "Tidy my notes" --follow
      brainq submit s1 "Tidy my notes" --no-wait           prints the turn's id
      brainq submit s1 "Charge order 4711" --request-key order-4711
      brainq submit s1 "Research this" --limits max_steps=40 --limits timeout_s=900
      brainq submit s1 "No, the blue one" --on-busy steer
      brainq submit s1 "Sum up March" --output-schema @sum.json --metadata '{"month": 3}'
      brainq submit s1 - --attach plan.png < question.txt

    The exit code tells how the turn ended; `brainq --help` lists the codes.
    """

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
        "limits": read_limits(limits or []),
        "options": read_options(options or []),
    }
    if message == "-":
        message = sys.stdin.read()
    raise typer.Exit(submit_and_wait(session, message, fields, wait or follow, follow, timeout_s, as_json))


def submit_and_wait(
    session: str, message: str, fields: dict[str, Any], wait: bool, follow: bool, timeout_s: float | None, as_json: bool
) -> ExitCode:
    """Submit a turn, then wait for its result or follow its events as requested. Returns the exit code. `fields` are
    the other arguments of `Client.submit`. Raises BrainqError.
    """
    from brainq.cli.pages.people import describe_receipt

    with open_client() as client:
        handle = client.submit(session, message, **fields)
        note_older_workers(client, session)
        if handle.joined is not None:
            note(
                f"input {handle.joined.client_message_id} of turn {handle.joined.turn_id} "
                f"{describe_receipt(handle.joined)}",
                style="dim",
            )
        if not wait:
            if as_json:
                print_json(_turn_ids(handle))
            else:
                sys.stdout.write(handle.turn_id + "\n")
            return ExitCode.OK
        printed = ""
        try:
            if follow:
                followed = follow_events(handle, as_json=as_json, timeout_s=timeout_s)
                printed = followed.text
                result = handle.result(None if timeout_s is None else 0)
            else:
                result = wait_for_result(handle, timeout_s)
        except ResultTimeout as error:
            raise ResultTimeout(f"{error}; follow it with `brainq tail {handle.turn_id}`") from None
        except Unreachable as away:
            raise _accepted_before(away, handle.turn_id) from None
        except KeyboardInterrupt:
            _note_turn_continues(handle)
            return ExitCode.INTERRUPTED
    if as_json:
        print_json(result)
    else:
        _print_result(result, printed, created=handle.created or handle.joined is not None)
    return EXIT_OF_ENDING[result.ending]


def read_limits(pairs: list[str]) -> dict[str, int | float] | None:
    """Parse `["max_steps=3", "timeout_s=2.5"]`. Raises InvalidInput for a pair that is not `name=number`."""
    from brainq.contracts.turn import LimitsOverride

    limits: dict[str, int | float] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            limits[name.strip()] = int(value) if value.strip().lstrip("-").isdigit() else float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise InvalidInput("--limits", f"{pair!r} is not NAME=NUMBER; write it like max_steps=3")
        if name.strip() not in LimitsOverride.model_fields:
            known = ", ".join(LimitsOverride.model_fields)
            raise InvalidInput("--limits", f"{name.strip()!r} is not a limit; use one of {known}")
    return limits or None


def read_options(pairs: list[str]) -> dict[str, Any] | None:
    """Parse `["temperature=0", "stop=END"]`. Raises InvalidInput for a pair that is not `name=value`."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput("--option", f"{pair!r} is not NAME=VALUE; write it like temperature=0")
        try:
            options[name.strip()] = value if name.strip() in TEXT_OPTIONS else json.loads(value)
        except ValueError:
            options[name.strip()] = value
    return options or None


def _print_result(result: TurnResult, printed: str, *, created: bool) -> None:
    from rich.text import Text

    text = result.text.strip()
    if text and text != printed.strip():
        # Control characters would act on a terminal; a file keeps them as they are.
        sys.stdout.write((clean(text) if stdout().is_terminal else text) + "\n")
        sys.stdout.flush()
    if result.error:
        reason = clean(result.error, lines=False)
        if result.ending is Ending.CANCELLED:
            note(f"reason: {reason}", style="yellow")
        else:
            note(f"error: {reason}", style="red")
    for warning in result.warnings:
        note(f"warning: {clean(warning, lines=False)}", style="yellow")
    line = Text(result.ending.value, STATUS_STYLES.get(result.ending.value, ""))
    facts = [
        *([result.stop_reason.value] if result.stop_reason.value != result.ending.value else []),
        counted(result.steps, "step"),
        counted(result.tool_calls, "call"),
        f"{result.input_tokens} in, {result.output_tokens} out tokens",
        *([f"${result.cost_usd:.4f}"] if result.cost_usd else []),
        duration(result.elapsed_ms),
        f"turn {result.turn_id}" + ("" if created else ", submitted before"),
    ]
    line.append(" · " + " · ".join(facts), style="dim")
    stderr().print(line, soft_wrap=True)


def _turn_ids(handle: TurnHandle) -> dict[str, Any]:
    ids = {"turn_id": handle.turn_id, "session_id": handle.session_id, "created": handle.created}
    return ids if handle.joined is None else ids | {"receipt": handle.joined.model_dump(mode="json")}


def _accepted_before(away: Unreachable, turn_id: str) -> Unreachable:
    """Return the error with the accepted turn's id added, so that the turn is not submitted a second time."""
    return Unreachable(f"{away}. Turn {turn_id} was accepted and will run; follow it with `brainq tail {turn_id}`")


def _note_turn_continues(handle: TurnHandle) -> None:
    note(
        f"\nturn {handle.turn_id} continues; use `brainq tail {handle.turn_id}` or `brainq cancel {handle.turn_id}`",
        "yellow",
    )
