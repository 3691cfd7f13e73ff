"""The model server of the providers' tests."""

from __future__ import annotations

from tests.integration.engine.models.conftest import wire

__all__ = ["wire"]
