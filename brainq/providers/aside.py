"""Model calls beside a turn's steps: reflections, summaries, extraction, judging."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from json_repair import repair_json

from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply, ModelRequest, Purpose
from brainq.errors import ProviderError
from brainq.providers.base import Provider


@dataclass(frozen=True, slots=True)
class Aside:
    """A model to ask beside the steps. It is asked once a call: no tools, no history but what is given."""

    provider: Provider
    model: str

    def ask(
        self,
        purpose: Purpose,
        system: str,
        text: str,
        *,
        timeout_s: float,
        output_schema: dict[str, Any] | None = None,
        max_output_tokens: int | None = 1000,
        session_id: str = "",
        turn_id: str = "",
        step: int = 0,
    ) -> ModelReply:
        """The reply. Raises ProviderError, also for an empty one (kind `malformed`)."""
        reply = self.provider.generate(
            ModelRequest(
                model=self.model,
                messages=(Message(role="system", content=system), Message(role="user", content=text)),
                output_schema=output_schema,
                max_output_tokens=max_output_tokens,
                timeout_s=timeout_s,
                session_id=session_id,
                turn_id=turn_id,
                step=step,
                purpose=purpose,
            )
        )
        if not reply.text.strip():
            raise ProviderError("the model's reply was empty", kind="malformed", retryable=False)
        return reply


def read_json_object(text: str) -> dict[str, Any]:
    """The JSON object in a model's text, fences and small mistakes mended.

    Raises ProviderError (kind `malformed`) when there is none.
    """
    found: Any = repair_json(text, return_objects=True)
    if isinstance(found, list):
        found = next((item for item in found if isinstance(item, dict)), None)
    if not isinstance(found, dict):
        raise ProviderError("the model's reply holds no JSON object", kind="malformed", retryable=False)
    return {str(key): value for key, value in found.items()}
