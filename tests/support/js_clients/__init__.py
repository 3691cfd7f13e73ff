"""npm packages that communicate with the gateway in the full tests: where they are, and why they cannot be used."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

FOLDER = Path(sys.prefix) / "js-clients"
"""A module that runs with this as its working directory finds the packages of package.json."""


def why_not() -> str | None:
    """Return why the packages cannot be used here, or None if they can."""
    if shutil.which("node") is None:
        return "the npm clients need Node 20.15 or newer, and there is no `node`"
    if not (FOLDER / ".ready").is_file():
        return "the npm clients are not installed; install them with: make js-clients"
    return None
