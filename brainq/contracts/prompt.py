"""Prompt templates: a named, versioned system prompt, and the judges of its answers."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator

from brainq.contracts.base import Wire
from brainq.contracts.ids import check_id


class PromptTemplate(Wire):
    """A system prompt that turns name by `prompt_id`.

    text      the system prompt; `{session_id}`, `{turn_number}` and `{prompt_version}` are filled in, and
              `{key}` from the turn's metadata
    version, tags
              recorded with each turn that names it: the turn's own version comes before, its own tags stand first
    judges    names of judges: `faithfulness`, `relevance`, or one of the brain's own
    """

    id: str = Field(min_length=1, max_length=200)
    text: str
    version: str = Field(default="1", max_length=200)
    tags: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=100)
    judges: tuple[str, ...] = ()

    @field_validator("judges")
    @classmethod
    def _judges(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(check_id("judges", name) for name in value)
