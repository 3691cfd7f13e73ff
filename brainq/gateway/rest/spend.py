"""The cost of model calls, as JSON and as CSV. A caller sees the cost of its own sessions."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from brainq.contracts.spending import SpendLine, check_spend_by, spend_csv
from brainq.gateway.edge.access import RequestDep
from brainq.gateway.rest.bodies import Answer

router = APIRouter(tags=["money"])
CSV_TYPE = "text/csv; charset=utf-8"
By = Annotated[
    str,
    Query(max_length=100, description="Comma-separated: day, tenant, brain, model, kind; or tool, day, tenant, brain."),
]
Since = Annotated[
    AwareDatetime | None, Query(description="Turns accepted at this time or later; by default 30 days ago.")
]
Until = Annotated[AwareDatetime | None, Query(description="Turns accepted before this time.")]


class SpendReport(Answer):
    """A line for each group. `total_usd` is the sum over calls whose price is known."""

    by: tuple[str, ...]
    lines: tuple[SpendLine, ...]
    total_usd: float


@router.get(
    "/v1/spend", response_model=SpendReport, responses={200: {"content": {"text/csv": {"schema": {"type": "string"}}}}}
)
async def spend(
    request: RequestDep,
    by: By = "day",
    since: Since = None,
    until: Until = None,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> SpendReport | Response:
    """Report the cost of model calls of the caller's sessions, or the number of calls of each tool."""
    groups = check_spend_by([word.strip() for word in by.split(",") if word.strip()])
    lines = await request.client.spend(by=groups, since=since, until=until, session_prefixes=request.caller.prefixes)
    if form == "csv":
        name = {"Content-Disposition": 'attachment; filename="spend.csv"'}
        return Response(spend_csv(groups, lines), media_type=CSV_TYPE, headers=name)
    return SpendReport(by=groups, lines=lines, total_usd=sum(line.cost_usd for line in lines))
