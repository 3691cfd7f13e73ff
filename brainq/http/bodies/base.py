"""What all bodies are, and what several routes answer.

Bodies are taken as they are: nothing is made a number that was sent as text, and unknown fields are refused.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Body(BaseModel):
    """What a request sends."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class Answer(BaseModel):
    """What a request is answered."""

    model_config = ConfigDict(frozen=True)


class Changed(Answer):
    """False: it was so before."""

    changed: bool


class Touched(Answer):
    """The turn that it made live, or cancelled; null: none."""

    turn_id: str | None
