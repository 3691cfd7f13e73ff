"""brainq: LLM agent turns as distributed work on Celery and Redis.

    from brainq import Brain, Client, Effect

Everything an application needs is here; models that follow a script, for tests, are in `brainq.testing`, and the parts
that do the work inside a turn in `brainq.engine`. Other modules may change without notice. `import brainq` loads
nothing but this file; each name is loaded when it is first used. `__init__.pyi` lists the names and their modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"


def _read_names() -> dict[str, str]:
    """Return the module of each public name, as `__init__.pyi` has it for type checkers."""
    found, module = dict[str, str](), ""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
        for line in stub:
            if line.startswith("from "):
                module = line.split()[1]
            for part in line.split(" as ")[1:]:
                found[part.strip().split(",")[0]] = module
    return found


_WHERE = _read_names()
# The engine's parts were here before they had a module, and are still found here.
__all__ = [name for name in sorted(_WHERE) if _WHERE[name] != "brainq.engine"] + ["__version__"]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'brainq' has no attribute {name!r}")
    value = getattr(import_module(_WHERE[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
