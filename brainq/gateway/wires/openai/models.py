"""`/v1/models`: the brains."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from brainq.gateway.edge.access import GatewayDep
from brainq.gateway.wires.openai.errors import error_responses
from brainq.gateway.wires.openai.parameters import require_brain

router = APIRouter(tags=["openai"])


@router.get("/v1/models", response_model=None, responses=error_responses())
async def models(gateway: GatewayDep) -> dict[str, Any]:
    """The brains that a request may name as its model."""
    return {"object": "list", "data": [_render_model(name) for name in gateway.brains.names]}


@router.get("/v1/models/{model}", response_model=None, responses=error_responses())
async def model(model: Annotated[str, Path(min_length=1, max_length=200)], gateway: GatewayDep) -> dict[str, Any]:
    """One brain."""
    return _render_model(require_brain(gateway, model).name)


def _render_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "brainq"}
