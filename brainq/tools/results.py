"""What a tool may return beside a plain value, and raise: Partial, Pending, WithFiles, ToolError, OutcomeUnknown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from brainq.contracts.file import MAX_FILE_BYTES, File
from brainq.errors import InvalidInput


class ToolError(Exception):
    """The call failed, and `text` is what the model reads of it, unchanged.

    Any other exception fails the call, too: the model then reads its type and its message in one line.

    text        at most 256,000 characters
    retryable   True: the model reads that it may try again
    """

    def __init__(self, text: str, *, retryable: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.retryable = retryable

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.text,), {"retryable": self.retryable}


class OutcomeUnknown(Exception):
    """A change may or may not have been made, and the tool cannot find out; `text` says what is known of it.

    The call ends `unknown`: the model reads the text, and that it must look before it repeats the change. A read has
    changed nothing: its call ends `failed`.
    """

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


@dataclass(frozen=True, slots=True)
class Partial:
    """`return Partial(value)`: this is what the tool had when it stopped early.

    The model reads that the result is incomplete.
    """

    value: Any


DEFAULT_PENDING_S = 86_400.0
MAX_TOKEN_CHARS = 500


@dataclass(frozen=True, slots=True)
class Pending:
    """The call parks until `client.complete_call(token, ...)` or `fail_call`, from any process, once.

    token       `ctx.outside_token()`, or a unique name of your own, such as a job id. One of your own
                can be completed only after the tool has returned; one from `outside_token()` at once
    timeout_s   how long to wait at most; the call then times out. The turn's time limit is paused meanwhile

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
    """`return WithFiles({"rows": 12}, [File.of("chart.png")])`: a value, and files that the model is shown with it.

    A tool whose only result is one file returns the File itself.
    """

    value: Any
    files: Sequence[File]


def split_files(returned: Any) -> tuple[Any, tuple[File, ...]]:
    """The value that a function returned, and the files beside it. Raises ValueError."""
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
