"""Budgets over HTTP: what is left of each, and setting and raising them."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from brainq.contracts.budgets import BudgetState
from brainq.contracts.ids import ALL_SESSIONS, is_within
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.rest.bodies import Answer, Body, ChangeAnswer

router = APIRouter(prefix="/v1/budgets", tags=["money"])
MAX_SCOPE_CHARS = 300


class BudgetList(Answer):
    """Budgets in their present windows. A caller of some tenants sees those of its own and of their users."""

    budgets: tuple[BudgetState, ...]


class SetBudgetBody(Body):
    """A budget as it is from now on. `usd` null: as the deployment's settings have it again."""

    scope: str = Field(max_length=MAX_SCOPE_CHARS, description="all, tenant, user, brain, or one such as tenant acme:")
    per: str = Field(description="hour, day or month.")
    usd: float | None = Field(description="US dollars a window.")
    at_cap: str = Field("park", description="park, refuse or finish.")


class SetBudgetAnswer(ChangeAnswer):
    """`unpriced_models` have no known price: the budget does not hold what they cost, a limit of tokens does."""

    unpriced_models: tuple[str, ...] = ()


class RaiseBudgetBody(Body):
    """More for the window that goes on."""

    scope: str = Field(max_length=MAX_SCOPE_CHARS, description="As `GET /v1/budgets` lists it.")
    per: str = Field(description="hour, day or month.")
    usd: float = Field(description="US dollars more.")


class RaiseAnswer(Answer):
    """What the window may cost now."""

    cap_usd: float


@router.get("")
async def budgets(request: RequestDep) -> BudgetList:
    """What each budget has left in its present window, and how many turns are parked for it."""
    found, prefixes = await request.client.budgets.list(), request.caller.sessions
    if ALL_SESSIONS not in prefixes:
        found = tuple(budget for budget in found if _is_own(prefixes, budget.scope))
    return BudgetList(budgets=found)


@router.put("")
async def set_budget(body: SetBudgetBody, request: RequestDep) -> SetBudgetAnswer:
    """Set a budget, over the deployment's settings. It needs `*`: it is an operator's."""
    request.require_session(None)
    unpriced = await request.client.budgets.set(**body.model_dump(), by=request.caller.name)
    return SetBudgetAnswer(changed=True, unpriced_models=unpriced)


@router.post("/raise")
async def raise_budget(body: RaiseBudgetBody, request: RequestDep) -> RaiseAnswer:
    """Let a budget's present window have more; turns that are parked for it go on. It needs `*`: whoever is held to a
    budget does not raise it."""
    request.require_session(None)
    cap = await request.client.budgets.raise_by(body.scope, body.per, body.usd, by=request.caller.name)
    return RaiseAnswer(cap_usd=cap)


def _is_own(prefixes: tuple[str, ...], scope: str) -> bool:
    kind, _, name = scope.partition(" ")
    return kind in ("tenant", "user") and is_within(prefixes, name)
