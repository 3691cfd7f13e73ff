"""Submitting a turn, waiting for its result, and following its events."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from brainq.cli import exit_codes
from brainq.cli.connect import open_client
from brainq.cli.exit_codes import ExitCode
from brainq.cli.output import STATUS_STYLES, clean, counted, duration, note, print_json, stderr, stdout
from brainq.cli.pages.events import EventPrinter
from brainq.cli.pages.people import describe_receipt
from brainq.client.handle import TurnHandle
from brainq.contracts.status import Ending, TurnState
from brainq.contracts.turn import LimitsOverride, TurnResult
from brainq.errors import InvalidInput, ResultTimeout

POLL_S = 2.0
WAITING_STATES = (TurnState.QUEUED, TurnState.PARKED)
TEXT_OPTIONS = ("tool_choice", "reasoning_effort")  # options that are a text, also where it looks like a number


@dataclass(frozen=True)
class FollowResult:
    """Whether the final event was seen, and the model's text that was shown last."""

    final: bool
    text: str


def follow_events(
    handle: TurnHandle, *, after: int = 0, as_json: bool = False, timeout_s: float | None = None
) -> FollowResult:
    """Print events as they come. Raises ResultTimeout when `timeout_s` is up before the final one."""
    timeline = EventPrinter(stdout())
    if after:
        snapshot = handle.snapshot()
        for entry in snapshot.trace if snapshot else ():
            timeline.add_known_call(entry.call_id, entry.tool, entry.effect)
    final = False
    try:
        for event in handle.events(after, timeout_s):
            if as_json:
                print_json(event)
            else:
                timeline.show(event)
            final = event.is_final
    finally:
        if not as_json:
            timeline.close()
    return FollowResult(final, timeline.text)


def submit_and_wait(
    session: str,
    message: str,
    *,
    wait: bool,
    follow: bool,
    timeout_s: float | None,
    limits: list[str],
    options: list[str],
    fields: dict[str, Any],
    as_json: bool,
) -> ExitCode:
    """Submit, wait as asked, print; the exit code. `fields` are those of `Client.submit`. Raises BrainqError."""
    fields = {**fields, "limits": read_limits(limits), "options": read_options(options)}
    if message == "-":
        message = sys.stdin.read()
    with open_client() as client:
        handle = client.submit(session, message, **fields)
        if handle.joined is not None:
            note(
                f"input {handle.joined.client_message_id} of turn {handle.joined.turn_id} "
                f"{describe_receipt(handle.joined)}",
                style="dim",
            )
        if not wait and not follow:
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
                result = _wait_for_result(handle, timeout_s)
        except ResultTimeout as error:
            raise ResultTimeout(f"{error}: `brainq tail {handle.turn_id}`") from None
        except KeyboardInterrupt:
            _note_turn_continues(handle)
            return ExitCode.INTERRUPTED
    if as_json:
        print_json(result)
    else:
        _print_result(result, printed, created=handle.created or handle.joined is not None)
    return exit_codes.exit_of_ending(result.ending.value)


def _wait_for_result(handle: TurnHandle, timeout_s: float | None) -> TurnResult:
    """The result; while the turn is queued or parked, each reason it waits is noted once. Raises ResultTimeout."""
    until = None if timeout_s is None else time.monotonic() + timeout_s
    noted = ""
    while True:
        left = POLL_S if until is None else until - time.monotonic()
        try:
            return handle.result(max(0.0, min(POLL_S, left)))
        except ResultTimeout:
            if left <= 0:
                raise ResultTimeout(
                    f"turn {handle.turn_id!r} has no result after {timeout_s:g} s; it goes on, ask again later"
                ) from None
        snapshot = handle.snapshot()
        waits = (
            f"{snapshot.state.value} {snapshot.awaits.value}" if snapshot and snapshot.state in WAITING_STATES else ""
        )
        if waits and waits != noted:
            parked = "parked: " if snapshot and snapshot.state is TurnState.PARKED else ""
            note(f"{parked}{handle.explain()}; `brainq show {handle.turn_id}` says how it goes on", style="yellow")
        noted = waits


def read_limits(pairs: list[str]) -> dict[str, int | float] | None:
    """`["max_steps=3", "timeout_s=2.5"]` as a dict. Raises InvalidInput for what is not `name=number`."""
    limits: dict[str, int | float] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        try:
            limits[name.strip()] = int(value) if value.strip().lstrip("-").isdigit() else float(value)
        except ValueError:
            equals = ""
        if not equals or not name.strip():
            raise InvalidInput("--limits", f"{pair!r} is not NAME=NUMBER, such as max_steps=3")
        if name.strip() not in LimitsOverride.model_fields:
            known = ", ".join(LimitsOverride.model_fields)
            raise InvalidInput("--limits", f"there is no limit {name.strip()!r}; the limits are {known}")
    return limits or None


def read_options(pairs: list[str]) -> dict[str, Any] | None:
    """`["temperature=0", "stop=END"]` as a dict. Raises InvalidInput for what is not `name=value`."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidInput("--option", f"{pair!r} is not NAME=VALUE, such as temperature=0")
        try:
            options[name.strip()] = value if name.strip() in TEXT_OPTIONS else json.loads(value)
        except ValueError:
            options[name.strip()] = value
    return options or None


def _print_result(result: TurnResult, printed: str, *, created: bool) -> None:
    text = result.text.strip()
    if text and text != printed.strip():
        # A terminal obeys control characters, a file does not.
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


def _note_turn_continues(handle: TurnHandle) -> None:
    note(
        f"\nturn {handle.turn_id} goes on: `brainq tail {handle.turn_id}` or `brainq cancel {handle.turn_id}`", "yellow"
    )
