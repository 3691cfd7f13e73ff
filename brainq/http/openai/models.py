"""`/v1/models`: the brains."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path

from brainq.http.gateway import Here
from brainq.http.openai.errors import refusals
from brainq.http.openai.params import require_brain

router = APIRouter(tags=["openai"])


@router.get("/v1/models", response_model=None, responses=refusals())
async def models(here: Here) -> dict[str, Any]:
    """The brains that a request may name as its model."""
    return {"object": "list", "data": [_model(name) for name in here.brains.names]}


@router.get("/v1/models/{model}", response_model=None, responses=refusals())
async def model(model: Annotated[str, Path(min_length=1, max_length=200)], here: Here) -> dict[str, Any]:
    """One brain."""
    return _model(require_brain(here, model).name)


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "brainq"}
