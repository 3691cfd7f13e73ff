"""What a tool returns that made an image or a file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from brainq.contracts.file import File


@dataclass(frozen=True, slots=True)
class WithFiles:
    """`return WithFiles({"rows": 12}, [File.of("chart.png")])`: a value, and files that the model is shown with it.

    A tool that has nothing to say beside one file returns the File itself.
    """

    value: Any
    files: Sequence[File]
