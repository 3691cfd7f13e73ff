"""The vault example with its offline rules behind the name of a model with a price, and an auxiliary model.

It is loaded with OPENAI_API_KEY and BRAINQ_MODEL set, so that the example chooses `openai:...`. No service is called.
"""

from __future__ import annotations

import json
import os

from brainq import ScriptedProvider, Selection
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.providers import register_provider
from brainq.engine.models.scripted import says
from examples.vault.rules import reply
from tests.support.brains import diary

MODEL = "gpt-4.1-mini"
ENVIRONMENT = {
    "BRAINQ_APP": "tests.support.brains.priced_vault:brain",
    "BRAINQ_MODEL": MODEL,
    "OPENAI_API_KEY": "not-used",
}
REVIEW = "The path leads out of the vault; say so instead of trying again."
SUMMARY = "The user dictated a long list of plants, which was written to inbox/plants.md."
REMEMBERED = "The user keeps bees."


def step(request: ModelRequest) -> ModelReply:
    diary.note("asked", turn=request.turn_id, step=request.step, tools=[spec.name for spec in request.tools])
    return reply(request)


def auxiliary(request: ModelRequest) -> ModelReply:
    diary.note("auxiliary", turn=request.turn_id, purpose=request.purpose)
    match request.purpose:
        case "reflection":
            return says(REVIEW)
        case "compaction":
            return says(SUMMARY)
        case "memory":
            items = [
                {"kind": "fact", "text": REMEMBERED},
                {"kind": "preference", "text": "The user prefers Latin names."},
            ]
            return says(json.dumps({"items": items}))
        case _:
            return says(json.dumps({"score": 0.9, "reason": "It keeps to the notes."}))


if os.environ.get("BRAINQ_APP", "").startswith(__name__):  # in its workers alone, not where a test imports it
    register_provider("openai", lambda: ScriptedProvider(rules=step, auxiliary=auxiliary, name="openai", latency_s=0.3))

from examples.vault.app import brain  # noqa: E402 - it chooses its model when it is loaded

if os.environ.get("BRAINQ_APP", "").startswith(__name__):
    brain.selection = Selection(max_tools_per_turn=5, pinned=("delete_note",))
__all__ = ["brain"]
