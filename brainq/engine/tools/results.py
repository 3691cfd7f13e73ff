"""The special results and exceptions of a tool, and the text that the model reads of a call's outcome."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, assert_never, cast

from brainq.contracts.call import ToolDenied, ToolFailure, ToolOutcome, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.contracts.file import MAX_FILE_BYTES, File
from brainq.contracts.message import Message
from brainq.errors import InvalidInput

DEFAULT_PENDING_S = 86_400.0
MAX_TOKEN_CHARS = 500
_DENIALS = {
    "duplicate": "This call was not made: it repeats one that already brought its result.",
    "blocked": "This call was not made: the tool is blocked for the rest of this turn.",
    "pre_hook": "This call was not made: it was refused before it started.",
    "validation": "This call was not made: its arguments were refused.",
    "budget": "This call was not made: this turn has no tool calls left. Answer with what you have.",
    "approval": "This call was not made: a person did not approve it. Do not repeat it unchanged.",
    "hold": "This call was not made: the turn was held, and nobody released it in time.",
    "cut": "This call was not made: the reply that requested it was not whole.",
    "too_many": "This call was not made: the reply requested too many calls.",
}
MAX_EDITED_CHARS = 4_000
_LOOK_FIRST = "Do not simply repeat it; first look whether its effect is there."
_UNKNOWN = f"It is unknown whether this call took effect: it started, and its worker was lost. {_LOOK_FIRST}"
_PARTIAL = "[incomplete: the tool stopped early and returned what it had]"


class ToolError(Exception):
    """The error of a failed call, with the `text` that the model reads unchanged.

    Any other exception fails the call, too. The model then reads its type and its message in one line.

    text: at most 256,000 characters.
    retryable: whether the model reads that it may try again.
    """

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text,), {"retryable": self.retryable}


class RefusedArguments(Exception):
    """The error of arguments that fit the tool's schema, but not its function, which was not called. The model reads
    the message."""

    def __init__(self, tool: str, problem: str) -> None:
        super().__init__(f"The arguments of {tool} were refused: {problem}. Correct them and call again.")


class OutcomeUnknown(Exception):
    """A change that may or may not have been made, while the tool cannot find out. `text` has what is known.

    The call ends `unknown`: the model reads the text, and that it must look before it repeats the change. A read has
    changed nothing: its call ends `failed`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Partial:
    """`return Partial(value)`: the part that the tool had when it stopped early.

    The model reads that the result is incomplete.
    """

    value: Any


@dataclass(frozen=True, slots=True)
class Pending:
    """A result that parks the call until `client.complete_call(token, ...)` or `fail_call` is called once, from any
    process.

    token: `ctx.outside_token()`, or a unique name of your own, such as a job id. Your own name works only after the
        tool has returned; a token from `outside_token()` works at once.
    timeout_s: how long to wait at most before the call times out. The turn's time limit is paused meanwhile.

    Raises InvalidInput.
    """

    token: str
    timeout_s: float = DEFAULT_PENDING_S

    def __post_init__(self) -> None:
        if not 0 < len(self.token) <= MAX_TOKEN_CHARS:
            raise InvalidInput("token", f"use 1 to {MAX_TOKEN_CHARS} characters, such as ctx.outside_token()")
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise InvalidInput("timeout_s", f"{self.timeout_s!r} must be finite and above 0 seconds")


@dataclass(frozen=True, slots=True)
class WithFiles:
    """`return WithFiles({"rows": 12}, [File.of("chart.png")])`: a value, and files that the model sees with it.

    A tool whose only result is one file returns the File itself.
    """

    value: Any
    files: Sequence[File]


def split_files(returned: Any) -> tuple[Any, tuple[File, ...]]:
    """Return the value that a function returned, and the files beside it. Raises ValueError."""
    match returned:
        case File():
            value, files = returned.attachment.label, (returned,)
        case WithFiles():
            value, files = returned.value, tuple(cast("Sequence[object]", returned.files))
        case _:
            return returned, ()
    kept = tuple(file for file in files if isinstance(file, File))
    if len(kept) < len(files):
        raise ValueError("it returned, but WithFiles takes a list of File; make each with File.of or File")
    size = sum(len(file.data) for file in kept)
    if size > MAX_FILE_BYTES:
        raise ValueError(f"it returned, but its files have {size:,} bytes; return at most {MAX_FILE_BYTES:,}")
    return value, kept


def outcome_text(outcome: ToolOutcome) -> tuple[str, bool]:
    """Return the text for the model, and whether it is an error. Texts are unchanged; other values become compact
    JSON."""
    match outcome:
        case ToolSuccess():
            value = outcome.value
            if not isinstance(value, str):
                value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
            if outcome.files_lost:
                value += f"\n[the files of this result are missing: {outcome.files_lost}]"
            return f"{value}\n{_PARTIAL}" if outcome.partial else value, False
        case ToolFailure():
            again = " You may try again." if outcome.retryable else ""
            if outcome.own_words:
                return f"{outcome.error}{again}", True
            return f"The tool failed: {outcome.error.rstrip('.')}.{again}", True
        case ToolTimeout():
            return _timeout(outcome), True
        case ToolDenied():
            return outcome.message or _DENIALS[outcome.reason], True
        case ToolUnknown():
            return outcome.message or _UNKNOWN, True
        case _:
            assert_never(outcome)


def tool_message(outcome: ToolOutcome, call_id: str, tool: str, turn_id: str, step: int, prefix: str = "") -> Message:
    """Return the message that answers a call. `prefix` comes before the outcome's own text."""
    text, is_error = outcome_text(outcome)
    return Message(
        role="tool",
        content=prefix + text,
        call_id=call_id,
        name=tool,
        is_error=is_error,
        turn=turn_id,
        step=step,
        attachments=outcome.attachments if isinstance(outcome, ToolSuccess) else (),
    )


def edited_note(arguments: Mapping[str, Any]) -> str:
    """Return the beginning of the tool message of a call whose arguments a person changed. It ends with a line
    break."""
    text = json.dumps(arguments, ensure_ascii=False)
    if len(text) > MAX_EDITED_CHARS:
        text = f"{text[:MAX_EDITED_CHARS]}... (the first {MAX_EDITED_CHARS} of {len(text)} characters)"
    return f"[A person changed the arguments before this ran: {text}]\n"


def cancelled_text(after_ms: int, *, is_read: bool) -> str:
    """Return the model's text for a call that a cancel cut off. 0 ms means that it had not started."""
    if after_ms == 0:
        return "Cancelled before it started."
    doubt = "" if is_read else "; whether it took effect is not known; check before repeating it"
    return f"Cancelled after {after_ms / 1000:.1f} s{doubt}."


def unreported_text(what: str) -> str:
    """Return the model's text for a change that did not report its end. `what` is the reason, without a full stop."""
    return (
        f"It is unknown whether this call took effect: it started, and {what} before it reported how it ended. "
        f"{_LOOK_FIRST}"
    )


def unknown_outcome(outcome: ToolUnknown, *, is_read: bool) -> ToolFailure | ToolUnknown:
    """Return the outcome of a call whose tool does not know it. `message` has the tool's own words.

    A read in doubt has failed, because there is nothing to look for.
    """
    words = outcome.message
    if is_read:
        return ToolFailure(error=words, error_type=outcome.why, latency_ms=outcome.latency_ms, own_words=True)
    message = f"{words}\nIt is unknown whether this call took effect. {_LOOK_FIRST}"
    return outcome.model_copy(update={"message": message})


def _timeout(outcome: ToolTimeout) -> str:
    if outcome.still_running:
        return (
            f"The tool did not finish within {outcome.after_ms / 1000:.1f} s and is no longer waited for. "
            "It may still take effect; do not repeat a change without looking first."
        )
    if outcome.after_ms == 0:
        return "The tool was not started: its time was already used up."
    return (
        f"The tool did not finish in time and was stopped after {outcome.after_ms / 1000:.1f} s. "
        "Ask for less at once, or go on without it."
    )
