"""Shows brainq's docstrings on API pages: a block of `name   what it is` lines becomes a list."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_ROW = re.compile(r"(\S+(?:, \S+)*) {2,}(\S.*)")


def as_lists(text: str) -> str:
    """`text` with each block of at least one row, `name`, two spaces or more, words, as a Markdown list.

    A line that is indented goes on with the row above it. Indented blocks that begin a paragraph are code, and stay.
    """
    return "\n\n".join(_block(block) for block in re.split(r"\n\s*\n", text))


def _block(block: str) -> str:
    lines = block.split("\n")
    rows = [_ROW.fullmatch(line) for line in lines]
    first = next((number for number, row in enumerate(rows) if row), None)
    if first is None or lines[0].startswith(" "):
        return block
    told, listed = lines[:first], list[str]()
    for line, row in zip(lines[first:], rows[first:], strict=True):
        if row:
            listed.append(f"- **`{row[1]}`** {row[2]}")
        elif line.startswith(" "):
            listed[-1] += f" {line.strip()}"
        else:
            listed.append(f"\n{line}")
    return "\n".join([*told, *([""] if told else []), *listed])


class Columns(Extension):
    """Rewrites each docstring once it is read."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_lists(obj.docstring.value)
