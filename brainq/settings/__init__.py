"""What a deployment can set: the settings, those of the gateway, and the environment they come from.

Loaded at first use: the command line reads the environment without pydantic-settings, which takes
a quarter of a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from brainq.settings.deployment import Concurrency, Settings, load_settings, settings_here

__all__ = ["Concurrency", "Settings", "load_settings", "settings_here"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from brainq.settings import deployment

        return getattr(deployment, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
