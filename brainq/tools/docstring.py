"""What a docstring says of a function and of its parameters."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_SECTION = re.compile(
    r"(Args|Arguments|Parameters|Params|Returns?|Raises|Yields|Examples?|Notes?|See Also)\s*:?\s*$"
)
_PARAMETERS = frozenset({"Args", "Arguments", "Parameters", "Params"})
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class DocParts:
    """The text before the first section, and what the `Args:` section says of each parameter."""

    summary: str
    parameters: dict[str, str]


def read_docstring(function: Callable[..., Any]) -> DocParts:
    """Split the function's own docstring; a missing one is empty."""
    text = function.__doc__
    if not text:
        return DocParts("", {})
    summary: list[str] = []
    entries: list[str] = []
    section = ""
    for line in inspect.cleandoc(text).splitlines():
        found = _SECTION.match(line) if not line.startswith(" ") else None
        if found and (line.rstrip().endswith(":") or section):
            section = found.group(1)
        elif not section:
            summary.append(line)
        elif section in _PARAMETERS:
            entries.append(line)
    return DocParts("\n".join(summary).strip(), _parameters(entries))


def _parameters(lines: list[str]) -> dict[str, str]:
    filled = [line for line in lines if line.strip()]
    if not filled:
        return {}
    margin = min(len(line) - len(line.lstrip()) for line in filled)
    found: dict[str, str] = {}
    name = ""
    for line in filled:
        is_entry = len(line) - len(line.lstrip()) == margin
        match = _ENTRY.match(line.strip()) if is_entry else None
        if match:
            name = match.group(1)
            found[name] = match.group(2).strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
