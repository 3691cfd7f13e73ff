"""The vault of notes with a real model that is too small for it: weak arguments, and nonsense for an answer.

Every turn ends all the same, and whatever the model asked for was run, refused or failed, and said so to it.
"""

from __future__ import annotations

import copy
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq import Limits, ModelOptions, ScriptedProvider, StepChoice, StepInfo
from brainq.adapters.models.openai.provider import OpenAIProvider
from brainq.contracts.status import Ending, TraceStatus
from examples.vault.app import brain as vault_brain
from examples.vault.vault import SHIPPED_NOTES
from tests.integration.engine.models.small_model import MODEL, SmallModel, why_not
from tests.support.pump import Pump

REASON = why_not()
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1200),  # a busy machine takes seconds for a step
    pytest.mark.needs(REASON is None, REASON),
]

CALLING_STEPS = 2  # of a turn: left to itself, the model calls nothing
MESSAGES = (
    "What do my notes say about retries?",
    "Write a note about tea.",
    "Delete the note inbox/standup-scratch.md.",
)


def made_to_call(info: StepInfo) -> StepChoice:
    """Asks for a call in the first steps of a turn; the arguments are the model's own."""
    choice = "required" if info.step <= CALLING_STEPS else "auto"
    return StepChoice(options=ModelOptions(seed=info.step, tool_choice=choice))


@pytest.fixture
def provider() -> Iterator[OpenAIProvider]:
    model = SmallModel(tools=True)
    made = OpenAIProvider(base_url=model.base_url("openai"), api_key="k", name="small")
    made.warm_up()
    yield made
    made.close()
    model.stop()


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "notes"
    shutil.copytree(SHIPPED_NOTES, folder)
    monkeypatch.setenv("VAULT_DIR", str(folder))
    return folder


def test_every_turn_of_a_weak_model_ends(provider: OpenAIProvider, notes: Path, pumps: Callable[..., Pump]) -> None:
    brain = copy.copy(vault_brain)
    brain.model = provider
    brain.options, brain.for_step = ModelOptions(temperature=0.8), made_to_call
    brain.limits = Limits(timeout_s=240, max_steps=4, max_tool_calls=6, max_output_tokens=60, max_context_tokens=6_000)
    brain.auxiliary_model = ScriptedProvider([])  # it has no answer: what is asked beside the steps goes by rules
    pump = pumps(brain, lease_s=10.0)
    called: list[str] = []
    for message in MESSAGES:
        handle = pump.submit("s1", message)
        result = pump.finish(handle, timeout_s=300)
        assert result.ending in (Ending.COMPLETED, Ending.TIMED_OUT), (result.stop_reason, result.error)
        assert result.error is None, result.error
        snapshot = handle.snapshot()
        assert snapshot is not None
        for entry in snapshot.trace:
            called.append(entry.tool)
            assert entry.status in (
                TraceStatus.COMPLETED,
                TraceStatus.FAILED,
                TraceStatus.DENIED,
                TraceStatus.TIMED_OUT,
            )
        assert result.input_tokens > 100
        assert {spend.model for spend in result.spends} <= {MODEL, "small"}
        client: Any = pump.wiring.state.redis
        history = [
            json.loads(text) for text in client.lrange(pump.wiring.state.keys.of_session("s1", "history"), 0, -1)
        ]
        asked = [call["id"] for entry in history for call in entry.get("calls", ())]
        answered = [entry["call_id"] for entry in history if entry["role"] == "tool"]
        assert asked == answered, "every call has its result"
    assert len(called) >= len(MESSAGES), "the model called tools"
