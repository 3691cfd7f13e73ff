"""Extensions: the packages of brainq/contrib, which the rest of brainq finds through entry points."""

from __future__ import annotations

from importlib.metadata import EntryPoints, entry_points
from typing import Any

from brainq.errors import SetupError


def load_extensions(group: str) -> dict[str, Any]:
    """Return what the entry points of `group` name. Raises SetupError if there are none."""
    return {point.name: point.load() for point in _find(group)}


def load_extension(group: str, name: str) -> Any:
    """Return what the entry point `name` of `group` names. Raises SetupError if there is none."""
    found = _find(group)
    if name not in found.names:
        raise _missing(f"the entry point {name!r} of {group!r}")
    return found[name].load()


def _find(group: str) -> EntryPoints:
    found = entry_points(group=group)
    if not found:
        raise _missing(f"the entry points of {group!r}")
    return found


def _missing(what: str) -> SetupError:
    return SetupError(
        f"the installed metadata of brainq lacks {what}, so it is older than its code; install brainq again, in a "
        "checkout with: pip install --no-deps -e ."
    )
