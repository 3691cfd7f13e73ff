"""What a tool returns that made an image or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from brainq.contracts.file import MOST_FILE_BYTES, File


@dataclass(frozen=True, slots=True)
class WithFiles:
    """`return WithFiles({"rows": 12}, [File.of("chart.png")])`: a value, and files that the model is shown with it.

    A tool that has nothing to say beside one file returns the File itself.
    """

    value: Any
    files: Sequence[File]


def parted(returned: Any) -> tuple[Any, tuple[File, ...]]:
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
    if size > MOST_FILE_BYTES:
        raise ValueError(
            f"it returned, but its files have {size:,} bytes; return at most {MOST_FILE_BYTES:,}"
        )
    return value, kept
