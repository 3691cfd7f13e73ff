"""AsyncHttpMemories and AsyncHttpBudgets: memories and budgets over HTTP, on an event loop."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import brainq
from brainq.client.http.async_handle import collect
from brainq.client.http.parsing import parse_all
from brainq.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from brainq import BudgetState, MemoryRow
    from brainq.client.http.sending import Api

RowId = int | str


class AsyncHttpMemories:
    """The memories that brains keep across turns, over HTTP. See `Memories`."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(
        self, scope: str | None = None, *, session: str | None = None, limit: int = 50, after: RowId | None = None
    ) -> tuple[MemoryRow, ...]:
        """List the memories of one scope, the newest first. See `Memories.list`. `last_turn_id` is empty."""
        scopes = _scope(scope, session)
        found, missing_cells = await collect(self._api, "/v1/memories", "memories", limit, after, scopes)
        rows = [{**one, "row": one["id"], "last_turn_id": ""} for one in found]
        return parse_all(brainq.MemoryRow, rows, missing_cells)

    async def forget(self, memory: RowId) -> bool:
        """Delete one memory, by its `row`, for good. Returns False if there is no such memory."""
        return await is_found(self._api, f"/v1/memories/{quote(str(memory), safe='')}")

    async def forget_all(self, scope: str | None = None, *, session: str | None = None) -> int:
        """Delete all memories of one scope for good. See `Memories.forget_all`."""
        try:
            answer = await self._api.json(self._api.delete("/v1/memories", _scope(scope, session)))
        except NotFound:
            return 0
        return int(answer["forgotten"])


def _scope(scope: str | None, session: str | None) -> Mapping[str, str | None]:
    if (scope is None) is (session is None):
        raise InvalidInput("scope", "give one of `scope` and `session`")
    return {"scope": scope, "session": session}


async def is_found(api: Api, path: str, query: Mapping[str, Any] | None = None) -> bool:
    """Delete something. Returns False if it is not there."""
    try:
        await api.json(api.delete(path, query))
    except NotFound:
        return False
    return True


class AsyncHttpBudgets:
    """Budgets over HTTP. See `BudgetVerbs`. Who sets and raises them is the token."""

    def __init__(self, api: Api) -> None:
        self._api = api

    async def list(self) -> tuple[BudgetState, ...]:
        """List the budgets in their current windows. See `BudgetVerbs.list`."""
        return parse_all(brainq.BudgetState, (await self._api.json(self._api.get("/v1/budgets")))["budgets"])

    async def set(self, scope: str, *, per: str, usd: float | None, at_cap: str = "park") -> tuple[str, ...]:
        """Set a budget in place of the one in BRAINQ_BUDGETS. See `BudgetVerbs.set`."""
        body = {"scope": scope, "per": per, "usd": usd, "at_cap": at_cap}
        return tuple((await self._api.json(self._api.put("/v1/budgets", body)))["unpriced_models"])

    async def raise_by(self, scope: str, per: str, usd: float) -> float:
        """Raise a budget by `usd` dollars in its current window. See `BudgetVerbs.raise_by`."""
        once = "look at client.budgets.list() before you raise it again"
        body = {"scope": scope, "per": per, "usd": usd}
        return float((await self._api.json(self._api.post("/v1/budgets/raise", body, once=once)))["cap_usd"])
