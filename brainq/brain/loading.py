"""Loading of the brains that a process runs, by their name (`module:variable`)."""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from brainq.brain.brain import Brain
from brainq.brain.brains import Brains, read_brains
from brainq.errors import BrainNotLoaded, InvalidInput
from brainq.observe.tracebacks import user_traceback, where_raised
from brainq.settings.environment import TYPED_OPTIONS

DEFAULT_ATTR = "brain"

DEFAULT_APP = "app:brain"

"""The setting's default, of which nobody who meets an error knows."""


def load_brains(reference: str) -> Brains:
    """The brain named `module:attr`, or all of a list, tuple or mapping of brains; `:attr` defaults to `:brain`.

    The working directory is put on the import path, as Celery does. Raises BrainNotLoaded that says who named it
    and what was tried, or the file and line where the module itself failed; that error is its cause.
    """
    module_name, _, attr = reference.strip().partition(":")
    attr = attr or DEFAULT_ATTR
    tried = f"tried {attr!r} of module {module_name!r} (working directory {os.getcwd()})"
    if not module_name:
        raise BrainNotLoaded("no brain was named; set BRAINQ_APP to module:attr, such as BRAINQ_APP=myapp.agent:brain")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name != module_name.partition(".")[0] and error.name != module_name:
            raise _import_failure(reference, error) from error
        raise BrainNotLoaded(
            f"{_reference_source(reference)}: there is no module {error.name!r} in {os.getcwd()}, nor is it installed"
            f"{_remedy(reference, module_name)}"
        ) from error
    except Exception as error:
        raise _import_failure(reference, error) from error
    for part in attr.split("."):
        if not hasattr(found, part):
            raise BrainNotLoaded(
                f"{_reference_source(reference)}: the module has no {attr!r}; {tried}{_brains_in_module(module_name)}"
            )
        found = getattr(found, part)
    try:
        return read_brains(found)
    except InvalidInput as wrong:
        raise BrainNotLoaded(
            f"{_reference_source(reference)}: {wrong.problem}; {tried}{_brains_in_module(module_name)}"
        ) from wrong


def _reference_source(reference: str) -> str:
    """What names this one."""
    typed = f"-A {reference}"
    if TYPED_OPTIONS.get("BRAINQ_APP") == typed and os.environ.get("BRAINQ_APP") == reference:
        return typed
    if os.environ.get("BRAINQ_APP"):
        return f"BRAINQ_APP={reference!r}"
    if reference == DEFAULT_APP:
        return f"no brain was named, and the default, {reference!r}"
    return f"app={reference!r} (BRAINQ_APP)"


def _remedy(reference: str, module_name: str) -> str:
    if os.environ.get("BRAINQ_APP") or reference != DEFAULT_APP:
        file = f"{module_name.partition('.')[0]}.py"
        return f". Run this where {file} is, or name another one: -A module:variable, or BRAINQ_APP"
    return (
        ". Run this where app.py is, set BRAINQ_APP=module:attr (in .env, too), or give the brain itself: "
        "Client(brain=...)"
    )


def _brains_in_module(module_name: str) -> str:
    """The brains that stand in a module that was imported."""
    held = vars(sys.modules[module_name])
    found = [f"{module_name}:{name}" for name, value in held.items() if isinstance(value, Brain)]
    return f". There is {', '.join(found[:5])}" if found else ""


def _import_failure(reference: str, error: Exception) -> BrainNotLoaded:
    """Where the user's own code failed: the frames of brainq and of the import system say nothing about it."""
    text, where = f"{type(error).__name__}: {error}", where_raised(error)
    if isinstance(error, SyntaxError):
        text, where = f"{type(error).__name__}: {error.msg}", f"{error.filename}:{error.lineno}"
    return BrainNotLoaded(
        f"{_reference_source(reference)} could not be imported: {where}: {text}", user_traceback(error)
    )
