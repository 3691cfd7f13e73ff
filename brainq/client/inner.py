"""The machines behind a client, for this package and those that stand on it. No part of what users call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from brainq.wiring import Wiring

if TYPE_CHECKING:
    from brainq.client.async_client import AsyncClient
    from brainq.client.client import Client


def wiring_of(client: Client | AsyncClient) -> Wiring:
    return client._wiring  # pyright: ignore[reportPrivateUsage]
