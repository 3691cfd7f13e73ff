"""Whether the gateway could do anything: Redis and SQL answer, and somebody could be let in."""

from __future__ import annotations

from brainq.client.async_client import AsyncClient
from brainq.errors import NotFound, SetupError
from brainq.http.kept import Kept
from brainq.http.who import NOBODY_YET, Who


def readiness_of(client: AsyncClient, who: Who) -> Kept[None]:
    """Raises where something is missing. Kept: anybody may ask, without a token, as often as he likes."""

    async def look() -> None:
        await client.ping()
        try:
            await client.handle("readyz")
        except NotFound:  # which SQL had to be asked for
            pass
        if not await who.is_anybody():
            raise SetupError(NOBODY_YET)

    return Kept(look)
