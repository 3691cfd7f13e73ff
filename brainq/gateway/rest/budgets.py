"""Budgets: list what is left of each, set and raise them."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from brainq.contracts.budgets import BudgetState
from brainq.contracts.ids import ALL_SESSIONS, is_within
from brainq.gateway.edge.access import FleetDep, RequestDep
from brainq.gateway.rest.bodies import Answer, Body, ChangeAnswer

router = APIRouter(prefix="/v1/budgets", tags=["money"])
MAX_SCOPE_CHARS = 300
PerField = Field(description="The window: hour, day or month.")


class BudgetList(Answer):
    """The budgets in their current windows. A caller of some tenants sees those of its tenants and their users."""

    budgets: tuple[BudgetState, ...]


class SetBudgetBody(Body):
    """A budget's new value."""

    scope: str = Field(
        max_length=MAX_SCOPE_CHARS, description="all, tenant, user or brain; or a single one, such as tenant acme:"
    )
    per: str = PerField
    usd: float | None = Field(description="US dollars per window; null restores the deployment's setting.")
    at_cap: str = Field("park", description="What happens to a turn at the cap: park, refuse or finish.")


class SetBudgetAnswer(ChangeAnswer):
    """The outcome. The cost of `unpriced_models` is unknown, so only a token limit can bound it."""

    unpriced_models: tuple[str, ...] = ()


class RaiseBudgetBody(Body):
    """An increase of a budget in its current window."""

    scope: str = Field(max_length=MAX_SCOPE_CHARS, description="A scope that `GET /v1/budgets` lists.")
    per: str = PerField
    usd: float = Field(description="US dollars to add.")


class RaiseAnswer(Answer):
    """The new cap of the current window."""

    cap_usd: float


@router.get("")
async def budgets(request: RequestDep) -> BudgetList:
    """List what each budget has left in its current window, and how many turns are parked for it."""
    found, prefixes = await request.client.budgets.list(), request.caller.sessions
    if ALL_SESSIONS not in prefixes:
        found = tuple(budget for budget in found if _is_own(prefixes, budget.scope))
    return BudgetList(budgets=found)


@router.put("")
async def set_budget(body: SetBudgetBody, request: FleetDep) -> SetBudgetAnswer:
    """Set a budget in place of the deployment's setting. Needs all sessions (`*`)."""
    unpriced = await request.client.budgets.set(**body.model_dump(), by=request.caller.name)
    return SetBudgetAnswer(changed=True, unpriced_models=unpriced)


@router.post("/raise")
async def raise_budget(body: RaiseBudgetBody, request: FleetDep) -> RaiseAnswer:
    """Raise a budget for its current window; turns that are parked for it resume. Needs all sessions (`*`), because a
    caller must not raise the budget that limits it."""
    cap = await request.client.budgets.raise_by(body.scope, body.per, body.usd, by=request.caller.name)
    return RaiseAnswer(cap_usd=cap)


def _is_own(prefixes: tuple[str, ...], scope: str) -> bool:
    kind, _, name = scope.partition(" ")
    return kind in ("tenant", "user") and is_within(prefixes, name)
