"""Looks before workers start: the brains, their models, Redis, SQL, the disk and ports.

`python -m brainq.cli.starting` loads the brains only, and says what is wrong with it.
"""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

from brainq.brain_loading import load_brains
from brainq.brains import Brains
from brainq.cli.output import say
from brainq.errors import BrainNotLoaded, SetupError
from brainq.preflight import require_start
from brainq.settings import Settings, load_settings

EXAMPLE = "examples.vault"


def ready_to_start(settings: Settings, *, redis_url: str | None, writes: Path | None = None) -> Brains:
    """The brains, once all is seen to be there; the traceback of one that fails is shown.

    redis_url   None: a server of its own will be started, or the one that runs on the data directory used
    writes      a directory that files will be written to
    Raises SetupError with a line for each fault.
    """
    try:
        return require_start(settings, redis_url=redis_url, writes=writes)
    except BrainNotLoaded as error:
        _show(error)
        if not os.environ.get("BRAINQ_APP") and not Path("app.py").exists():
            raise SetupError(_no_brain()) from error
        raise


def _show(error: BrainNotLoaded) -> None:
    if error.shown_traceback:
        say(error.shown_traceback)


def _no_brain() -> str:
    hint = "make a project: `brainq init shop`, or name your brain: `brainq dev -A module:variable`"
    if _is_there(EXAMPLE):
        hint += f", or try the example: `brainq dev -A {EXAMPLE}:brain`"
    return f"no brain: neither -A nor BRAINQ_APP is set, and there is no app.py with a `brain`; {hint}"


def _is_there(module: str) -> bool:
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


if __name__ == "__main__":
    try:
        load_brains(load_settings().app)
    except BrainNotLoaded as failure:
        _show(failure)
        say(f"brainq: {failure}", style="red")
        sys.exit(1)
