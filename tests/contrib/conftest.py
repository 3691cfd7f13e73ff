"""The fixtures of the gateway's tests, for its wires."""

from __future__ import annotations

from tests.integration.conftest import pumps
from tests.integration.gateway.conftest import gateway, gateways, pump, whole_gateway

__all__ = ["gateway", "gateways", "pump", "pumps", "whole_gateway"]
