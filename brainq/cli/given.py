"""What is given to a command as text, as `@FILE`, or on stdin (`@-`)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from brainq.errors import InvalidInput

if TYPE_CHECKING:
    from brainq.contracts.file import File


def text_of(given: str, field: str) -> str:
    """`given` itself, or what `@FILE` or stdin (`@-`) holds. Raises InvalidInput."""
    if given == "@-":
        return sys.stdin.read()
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            field, f"{given[1:]!r} cannot be read ({type(error).__name__}); name a text file"
        ) from None


def json_of(given: str, field: str) -> Any:
    """The JSON value that `text_of` finds. Raises InvalidInput."""
    try:
        return json.loads(text_of(given, field))
    except ValueError as error:
        raise InvalidInput(
            field, f'must be JSON ({error}); write a value such as \'{{"path": "a.md"}}\''
        ) from None


def object_of(given: str, field: str) -> dict[str, Any]:
    """The JSON object that `text_of` finds. Raises InvalidInput."""
    found: object = json_of(given, field)
    if not isinstance(found, dict):
        raise InvalidInput(field, 'must be a JSON object, such as \'{"path": "a.md"}\'')
    return cast("dict[str, Any]", found)


def files_of(paths: list[str]) -> list[File]:
    """The files that `--attach` names. Raises InvalidInput."""
    from brainq.contracts.file import File

    try:
        return [File.of(path) for path in paths]
    except InvalidInput as refused:
        raise InvalidInput("--attach", refused.problem) from None
