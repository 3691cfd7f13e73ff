"""Build the machines of one process from its settings. All layers meet only here.

Modules are loaded at first use, because the checks before a start need none of the machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.app.wiring.state import doorbells
    from brainq.app.wiring.wiring import Wiring

__all__ = ["Wiring", "doorbells"]
_MODULES = {"Wiring": "wiring", "doorbells": "state"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
