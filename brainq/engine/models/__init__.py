"""Language models: the Provider protocol, the vendors' services, and a scripted model.

The vendors' SDKs are imported at the first call, so importing this package is cheap.
"""

from __future__ import annotations

from brainq.engine.models.providers import Provider, known_providers, register_provider, resolve_model
from brainq.engine.models.scripted import ScriptedProvider, calls, fails, says

__all__ = [
    "Provider",
    "ScriptedProvider",
    "calls",
    "fails",
    "known_providers",
    "register_provider",
    "resolve_model",
    "says",
]
