"""The settings of a deployment and of the gateway, and the environment from which they are read.

The module is loaded lazily, because importing pydantic-settings takes a quarter of a second and the command line does
not always need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.runtime.settings.deployment import Concurrency, Settings, load_settings, settings_here

__all__ = ["Concurrency", "Settings", "load_settings", "settings_here"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from brainq.runtime.settings import deployment

        return getattr(deployment, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
