"""A brain with memory and judges that fail as told, and what SQL keeps of its turns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from brainq.app.wiring.finalizer import judge_runtime, make_recall
from brainq.client.handle import TurnHandle
from brainq.contracts.brain import Memory, PromptTemplate
from brainq.contracts.evaluation import JudgeCase, Judgement
from brainq.contracts.memory import MemoryItem, RecordedTurn
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.rerun import Retried
from brainq.engine.jobs import MAX_TRIES
from brainq.engine.memory.judge_runner import JudgeRunner
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from tests.support.pump import Pump

MESSAGE = "I prefer short answers. Where does the boat lie?"
ANSWER = "The boat lies in the old shed."


class Extractor:
    """Finds one thing, after failing `times`; `meanwhile` happens once while it looks."""

    def __init__(self, times: int = 0) -> None:
        self.left = times
        self.keys: list[str] = []
        self.meanwhile: Callable[[], Retried] | None = None

    def extract_turn(self, turn: RecordedTurn) -> list[MemoryItem]:
        self.keys.append(turn.step_key)
        if (meanwhile := self.meanwhile) is not None:
            self.meanwhile = None
            assert meanwhile().word == "done"
        if self.left:
            self.left -= 1
            raise OSError("the extractor is away")
        return [MemoryItem(kind="preference", text=f"They said: {turn.user_message}")]


class Tone:
    name = "tone"

    def __init__(self, times: int = 0) -> None:
        self.left = times

    def judge(self, case: JudgeCase) -> Judgement:
        if self.left:
            self.left -= 1
            raise OSError("the judge is away")
        return Judgement(score=0.5, reason=case.transcript)


def brain_of(*judges: str, memory: Memory | None = None, own: tuple[Any, ...] = (), **more: Any) -> Brain:
    brain = Brain(
        "parts",
        ScriptedProvider([calls(("look", {})), says(ANSWER)]),
        memory=memory,
        prompts=[PromptTemplate(id="support", text="Help.", judges=judges)],
        judges=own,
        **more,
    )

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        return "boat.md: it lies in the old shed"

    return brain


Pumps = Callable[..., Pump]


def pump_of(pumps: Pumps, brain: Brain, *, max_tries: int = 1) -> Pump:
    """A pump whose steps are dead after `max_tries`."""
    pump = pumps(brain)
    finalizer: Any = pump.wiring.finalizer
    finalizer.late.jobs.max_tries = max_tries
    return pump


def run_turn(pump: Pump, message: str = MESSAGE) -> TurnHandle:
    """A turn with its chain; the doorbells of judges stay on their queue."""
    handle = pump.submit("s1", message, prompt_id="support")
    while pump.drain("brainq.turns", "brainq.tools.read_only", "brainq.finalize"):
        pass
    return handle


def runner_of(pump: Pump, **options: Any) -> JudgeRunner:
    wiring = pump.wiring
    jobs = replace(wiring.judge_runner.jobs, max_tries=options.pop("max_tries", MAX_TRIES))
    return JudgeRunner(
        brains=wiring.brains.each(judge_runtime),
        brain_of=wiring.turn_brains.name,
        rows=wiring.store.judgements,
        recorded=make_recall(wiring).recorded,
        bells=wiring.state.finals,
        jobs=jobs,
        **options,
    )


def memories(pump: Pump, handle: TurnHandle) -> list[tuple[str, int]]:
    return [(row.text, row.times_seen) for row in pump.wiring.store.memories.of_turn(handle.turn_id)]


def states(pump: Pump, handle: TurnHandle) -> dict[str, str]:
    return {row.step: row.state for row in pump.wiring.store.steps.of_turn(handle.turn_id)}


def judgements(pump: Pump, handle: TurnHandle) -> dict[str, Any]:
    return {row.judge: row for row in pump.wiring.store.judgements.of_turn(handle.turn_id)}


def forget(pump: Pump) -> None:
    """Redis lets everything go."""
    client: Any = pump.wiring.state.redis
    client.flushall()


def left_in_redis(pump: Pump) -> list[str]:
    client: Any = pump.wiring.state.redis
    return client.keys("*")
