"""`brainq finalize retry`: what the finalizer gave up, run again by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from brainq.contracts.brain import Memory
from brainq.errors import ExitCode
from tests.support.commands import Brainq
from tests.support.parts import Extractor, Pumps, brain_of, forget, pump_of, run_turn

APP = """
import os
from brainq import Brain, ScriptedProvider
from brainq.contracts.memory import MemoryItem
from brainq.contracts.brain import Memory
from brainq.contracts.brain import PromptTemplate
from brainq.engine.models.scripted import says


class Extractor:
    def extract_turn(self, turn):
        if os.path.exists("away"):
            raise OSError("the extractor\\x1b[31m is away")
        return [MemoryItem(kind="fact", text="They were here.")]


memory = Memory(retriever=None, extractor=Extractor(), learner=None)
brain = Brain("cli", ScriptedProvider([says("Done.")]), memory=memory)
"""


def test_the_command_retries_and_says_how_it_went(
    pumps: Pumps, brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts_app.py").write_text(APP)
    monkeypatch.setenv("BRAINQ_APP", "parts_app:brain")
    pump = pump_of(pumps, brain_of(memory=Memory(retriever=None, extractor=Extractor(times=1), learner=None)))
    turn_id = run_turn(pump).turn_id
    forget(pump)
    (tmp_path / "away").touch()
    roles: list[str] = []
    stopped: list[str] = []

    def started(role: str) -> Callable[[], None]:
        roles.append(role)
        return lambda: stopped.append(role)

    monkeypatch.setattr("brainq.runtime.observe.otel_setup.start_traces", started)
    ran = brainq("finalize", "retry", turn_id)
    assert roles == stopped == ["retry"]
    assert ran.code == ExitCode.FAILED
    assert "memory: running" in ran.err
    assert "memory: failed again: OSError: the extractor" in ran.err
    assert "\x1b" not in ran.err

    (tmp_path / "away").unlink()
    ran = brainq("finalize", "retry", turn_id, "memory", "--json")
    assert ran.code == ExitCode.OK
    assert json.loads(ran.out) == {"turn_id": turn_id, "step": "memory", "outcome": "done", "error": ""}
    assert [row.text for row in pump.wiring.store.memories.of_turn(turn_id)] == ["They were here."]

    ran = brainq("finalize", "retry", turn_id)
    assert ran.code == ExitCode.OK
    assert "nothing to retry" in ran.err
    ran = brainq("finalize", "retry", turn_id, "--json")
    assert (ran.code, json.loads(ran.out)) == (ExitCode.OK, [])
    assert brainq("finalize", "retry", turn_id, "memory").code == ExitCode.USAGE
    ran = brainq("finalize", "retry", turn_id, "memroy")
    assert ran.code == ExitCode.USAGE
    assert "its steps are" in ran.err
    assert brainq("finalize", "retry", "01zzzz").code == ExitCode.NOT_FOUND
    usage = brainq("finalize", "retry", "--help").out
    assert "[STEP]" in usage
    assert "[[STEP]]" not in usage


def test_a_redacted_turn_that_redis_has_let_go_is_refused(
    pumps: Pumps, brainq: Brainq, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts_app.py").write_text(APP)
    monkeypatch.setenv("BRAINQ_APP", "parts_app:brain")
    memory = Memory(retriever=None, extractor=Extractor(times=1), learner=None)
    pump = pump_of(pumps, brain_of(memory=memory, redact_logs=True))
    turn_id = run_turn(pump).turn_id
    forget(pump)
    ran = brainq("finalize", "retry", turn_id)
    assert ran.code == ExitCode.USAGE
    assert "SQL keeps none of its content (redact_logs)" in ran.err
    assert "BRAINQ_KEEP_TURN_S" in ran.err
    assert pump.wiring.store.memories.of_turn(turn_id) == []
