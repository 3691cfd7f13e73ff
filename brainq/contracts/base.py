"""The base of every model that crosses a process line."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Wire(BaseModel):
    """Frozen, refuses unknown fields, cheap to validate from JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")
