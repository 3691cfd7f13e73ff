"""A prompt template, filled in for one turn. Pure."""

from __future__ import annotations

import re

from brainq.contracts.callbacks import TurnInfo
from brainq.contracts.prompt import PromptTemplate
from brainq.errors import InvalidInput

_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


def render(template: PromptTemplate, info: TurnInfo) -> str:
    """The template's text with its places filled; other braces (JSON, code) stay as they are.

    Raises InvalidInput naming a place that neither the turn nor its metadata fills.
    """
    known: dict[str, object] = {
        **(info.metadata or {}),
        "session_id": info.session_id,
        "turn_number": info.turn_number,
        "prompt_version": info.prompt_version or template.version,
    }

    def filled(place: re.Match[str]) -> str:
        if place[1] not in known:
            raise InvalidInput(
                f"prompts[{template.id!r}]",
                f"nothing fills {place[0]}; send it in the turn's metadata, or use one of "
                "{session_id} {turn_number} {prompt_version}",
            )
        return str(known[place[1]])

    return _PLACE.sub(filled, template.text)
