"""Memory, learner and judges over real SQL and Redis: once in SQL, whatever a part does, and again when asked to."""

from __future__ import annotations

import re
import runpy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from brainq.app.wiring.finalizer import finalizer_runtime
from brainq.client.operator import Operator
from brainq.contracts.brain import Memory
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending
from brainq.engine.brain.brain import Brain
from brainq.engine.finalize.rerun import Retried
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.asking.fallback import Fallback
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, fails, says
from brainq.errors import InvalidInput
from tests.support.parts import (
    ANSWER,
    MESSAGE,
    Extractor,
    Pumps,
    Tone,
    brain_of,
    forget,
    judgements,
    left_in_redis,
    memories,
    pump_of,
    run_turn,
    runner_of,
    states,
)

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "after-the-answer.md"


# -- all is well --------------------------------------------------------------------------------------------------


def test_a_turn_is_remembered_learned_from_and_judged(pumps: Pumps) -> None:
    """The model takes no auxiliary calls: everything goes by rules, and says so."""
    pump = pump_of(pumps, brain_of("faithfulness", "tone", memory=Memory(retriever=None), own=(Tone(),)))
    handle = run_turn(pump)
    assert handle.result(timeout_s=1).text == ANSWER
    assert memories(pump, handle) == [("The user said: I prefer short answers.", 1)]
    seen = pump.wiring.store.observations.of_turn(handle.turn_id)
    assert {(row.kind, row.text) for row in seen} == {("topic", "boat lie"), ("topic", "short answers")}
    user_row = pump.wiring.store.messages.user_row(handle.turn_id)
    assert {row.source_event_id for row in seen} == {f"chat_message:{user_row}"}

    bells = [bell for bell in pump.waiting() if bell.queue == "brainq.judges"]
    assert [bell.args for bell in bells] == [("s1", handle.turn_id, "faithfulness"), ("s1", handle.turn_id, "tone")]
    runner = runner_of(pump)
    assert [runner.run(*bell.args) for bell in bells] == ["judged", "judged"]
    assert [runner.run(*bell.args) for bell in bells] == ["dropped", "dropped"]
    rows = judgements(pump, handle)
    assert (rows["faithfulness"].score, rows["faithfulness"].method) == (1.0, "rules")
    assert rows["tone"].score == 0.5
    assert rows["tone"].reason.splitlines() == [
        f"[user] {MESSAGE}",
        "[assistant] (calls look)",
        "[tool] boat.md: it lies in the old shed",
        f"[assistant] {ANSWER}",
    ]


def test_what_extraction_and_judging_cost_is_counted_once(pumps: Pumps, monkeypatch: pytest.MonkeyPatch) -> None:
    def price(provider: str, model: str, usage: TokenUsage) -> float:
        return usage.total / 1000

    for place in ("machines", "finalizer"):
        monkeypatch.setattr(f"brainq.app.wiring.{place}.cost_usd", price)

    def beside(request: ModelRequest) -> ModelReply | ScriptedFailure:
        used = TokenUsage(input_tokens=100, output_tokens=10)
        if request.purpose == "memory":
            return says('{"items": [{"kind": "fact", "text": "The user has a boat."}]}', usage=used)
        if "faithful" in request.messages[0].content:
            return says('{"score": 0.5, "reason": "Half."}', usage=used)
        return fails("timeout")  # asked, and nobody knows what it did

    down = ScriptedProvider([fails()], auxiliary=lambda _: fails(), name="down")
    aside = Fallback([down, ScriptedProvider([fails()], auxiliary=beside, name="beside")])
    brain = brain_of("faithfulness", "relevance", "tone", memory=Memory(), own=(Tone(),), auxiliary_model=aside)
    pump = pump_of(pumps, brain)
    handle = run_turn(pump)
    result = handle.result(timeout_s=1)
    runner = runner_of(pump)
    bells = [bell.args for bell in pump.waiting() if bell.queue == "brainq.judges"]
    assert [runner.run(*args) for args in bells * 2] == ["judged"] * 3 + ["dropped"] * 3

    facts = Operator(pump.settings).facts(handle.turn_id)
    after = facts.spends[len(result.spends) :]
    assert facts.spends[: len(result.spends)] == list(result.spends)
    assert [(spend.kind, spend.model, spend.output_tokens) for spend in after] == [
        ("memory", "beside", 10),
        ("judge", "beside", 10),
        ("judge", "beside", 1_000),  # its longest reply: nobody knows what it did
    ]
    assert after[0].cost_usd == pytest.approx(0.11)
    assert after[2].input_tokens > 0
    assert result.cost_usd is not None
    total = result.cost_usd + sum(spend.cost_usd or 0 for spend in after)
    assert facts.used == {"tokens": sum(spend.usage.total for spend in facts.spends), "cost_usd": pytest.approx(total)}
    (listed,) = pump.client.turns()
    assert listed.cost_usd == pytest.approx(total)
    rows = judgements(pump, handle)
    assert (rows["faithfulness"].method, rows["faithfulness"].cost_usd) == ("model", pytest.approx(0.11))
    assert (rows["relevance"].method, rows["tone"].input_tokens) == ("rules", None)


def test_a_brain_without_parts_has_no_such_steps(pumps: Pumps) -> None:
    brain = Brain("bare", ScriptedProvider([says("Hi.")]))
    pump = pump_of(pumps, brain)
    run_turn(pump)
    assert finalizer_runtime(brain).order.names == ("citations", "log", "result", "decision")


def test_a_scope_is_shared_by_the_sessions_of_a_user(pumps: Pumps) -> None:
    pump = pump_of(pumps, brain_of(memory=Memory(retriever=None, scope=lambda session_id: "user-1")))
    run_turn(pump)
    assert [row.text for row in pump.wiring.store.memories.list("user-1")] == ["The user said: I prefer short answers."]


# -- crashes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("step", ["memory", "learner", "judges"])
@pytest.mark.parametrize("effect", [False, True], ids=["before its effect", "after its effect"])
def test_a_finalizer_that_dies_at_a_step_is_followed_by_another(pumps: Pumps, step: str, effect: bool) -> None:
    extractor = Extractor()
    brain = brain_of("relevance", memory=Memory(retriever=None, extractor=extractor))
    pump, dead = pump_of(pumps, brain, max_tries=2), pumps(brain, owner="dead", lease_s=60.0)
    pump.ring_each_step()
    handle = pump.submit("s1", MESSAGE, prompt_id="support")
    while (bell := pump.take("brainq.turns", "brainq.tools.read_only", "brainq.finalize")) and bell.args[2:] != (step,):
        pump.answer(bell)
    assert bell is not None, f"{step} was never rung for"
    claim: Any = dead.wiring.state.finals.claim("s1", handle.turn_id, step, "dead")
    if effect:
        machine: Any = pump.wiring.finalizer
        turn = dead.wiring.state.finals.ended("s1", handle.turn_id)
        assert turn is not None
        found = machine._brains.default.order.get(step)
        found.run(StepContext(claim, lambda: turn, dead.wiring.state.finals, machine.late.records, brain))
    assert pump.answer(bell) == "dropped: held"
    dead.wiring.state.redis.hset(dead.wiring.state.keys.turn("s1", handle.turn_id), "fin_lease", 0)
    while dead.wiring.state.redis.hget(dead.wiring.state.keys.turn("s1", handle.turn_id), "fin_step"):
        pump.sweep()
        pump.drain("brainq.finalize")
    assert memories(pump, handle) == [(f"They said: {MESSAGE}", 1)]
    assert [row.times_seen for row in pump.wiring.store.observations.of_turn(handle.turn_id)] == [1, 1]
    assert [row.state for row in judgements(pump, handle).values()] == ["pending"]
    assert len(extractor.keys) == 1 + (effect and step == "memory")
    assert set(extractor.keys) == {f"{handle.turn_id}:memory"}


# -- parts that fail ----------------------------------------------------------------------------------------------


def test_an_extractor_that_fails_for_ever_stops_nothing_and_may_be_tried_again(pumps: Pumps) -> None:
    extractor = Extractor(times=2)
    pump = pump_of(pumps, brain_of("relevance", memory=Memory(retriever=None, extractor=extractor)))
    handle = run_turn(pump)
    result = handle.result(timeout_s=1)
    assert (result.ending, result.text) == (Ending.COMPLETED, ANSWER)
    assert pump.wiring.store.turns.result(handle.turn_id) == result
    assert result.warnings == ("nothing of this turn was kept in memory: the step `memory` failed for good",)
    assert states(pump, handle) == {
        "log": "done",
        "memory": "dead",
        "learner": "done",
        "judges": "done",
        "decision": "done",
    }
    assert memories(pump, handle) == []

    retrier = pump.wiring.step_rerunner
    assert retrier.steps_to_run(handle.turn_id, None) == ["memory"]
    again = retrier.run("s1", handle.turn_id, "memory")
    assert again == Retried("memory", "failed", "OSError: the extractor is away")
    assert states(pump, handle)["memory"] == "dead"
    assert retrier.run("s1", handle.turn_id, "memory").word == "done"
    assert memories(pump, handle) == [(f"They said: {MESSAGE}", 1)]
    assert handle.result(timeout_s=1).warnings == ()
    assert pump.wiring.store.turns.result(handle.turn_id) == handle.result(timeout_s=1)
    assert set(extractor.keys) == {f"{handle.turn_id}:memory"}
    with pytest.raises(InvalidInput, match="'memory' is done"):
        retrier.steps_to_run(handle.turn_id, "memory")


def test_a_step_is_tried_again_after_redis_has_let_the_turn_go(pumps: Pumps) -> None:
    extractor = Extractor(times=1)
    pump = pump_of(pumps, brain_of(memory=Memory(retriever=None, extractor=extractor)))
    handle = run_turn(pump)
    forget(pump)
    assert pump.wiring.step_rerunner.run("s1", handle.turn_id, "memory").word == "done"
    assert memories(pump, handle) == [(f"They said: {MESSAGE}", 1)]
    assert left_in_redis(pump) == []


def test_a_retry_that_races_with_another_writes_once(pumps: Pumps) -> None:
    """The other try is at work while this one is: of two that end, one writes."""
    extractor = Extractor(times=1)
    pump = pump_of(pumps, brain_of(memory=Memory(retriever=None, extractor=extractor)))
    handle = run_turn(pump)
    retrier = pump.wiring.step_rerunner
    extractor.meanwhile = lambda: retrier.run("s1", handle.turn_id, "memory")
    assert retrier.run("s1", handle.turn_id, "memory").word == "done"
    assert memories(pump, handle) == [(f"They said: {MESSAGE}", 1)]


# -- judges that fail ---------------------------------------------------------------------------------------------


def test_an_unknown_judge_is_dead_with_the_remedy_until_the_brain_has_it(pumps: Pumps) -> None:
    pump = pump_of(pumps, brain_of("tone"))
    handle = run_turn(pump)
    assert runner_of(pump).run("s1", handle.turn_id, "tone") == "dead"
    assert "no judge is named 'tone'" in judgements(pump, handle)["tone"].error
    mended = pumps(brain_of("tone", own=(Tone(),)), owner="mended")
    retrier = mended.wiring.step_rerunner
    assert retrier.steps_to_run(handle.turn_id, None) == ["judge:tone"]
    assert retrier.run("s1", handle.turn_id, "judge:tone").word == "done"
    assert judgements(pump, handle)["tone"].score == 0.5


def test_a_judge_that_fails_waits_and_is_dead_after_its_tries(pumps: Pumps) -> None:
    pump = pump_of(pumps, brain_of("tone", own=(Tone(times=9),)))
    handle = run_turn(pump)
    assert runner_of(pump).run("s1", handle.turn_id, "tone") == "failed"
    assert runner_of(pump).run("s1", handle.turn_id, "tone") == "dropped", "its next try is not due yet"
    row = judgements(pump, handle)["tone"]
    assert (row.state, row.tries, row.error) == ("pending", 1, "OSError: the judge is away")
    other = run_turn(pump)
    assert runner_of(pump, max_tries=1).run("s1", other.turn_id, "tone") == "dead"


def test_a_turn_is_judged_from_sql_after_redis_has_let_it_go(pumps: Pumps) -> None:
    pump = pump_of(pumps, brain_of("tone", own=(Tone(),)))
    handle = run_turn(pump)
    forget(pump)
    assert runner_of(pump).run("s1", handle.turn_id, "tone") == "judged"
    assert "[tool] boat.md" in judgements(pump, handle)["tone"].reason


def test_a_redacted_turn_is_judged_while_redis_has_it_and_not_after(pumps: Pumps) -> None:
    pump = pump_of(pumps, brain_of("tone", own=(Tone(),), redact_logs=True))
    handle = run_turn(pump)
    assert runner_of(pump).run("s1", handle.turn_id, "tone") == "judged"
    row = judgements(pump, handle)["tone"]
    assert (row.score, row.reason) == (0.5, "")
    other = run_turn(pump)
    forget(pump)
    assert runner_of(pump).run("s1", other.turn_id, "tone") == "dead"
    assert "redact_logs" in judgements(pump, other)["tone"].error


# -- the page -----------------------------------------------------------------------------------------------------


def test_the_parts_of_the_page_work(
    pumps: Pumps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    forgetting, code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "page.py").write_text(code)
    brain: Brain = runpy.run_path(str(tmp_path / "page.py"))["brain"]
    pump = pump_of(pumps, brain)
    handle = pump.submit("ann.1", "I am allergic to nuts.", prompt_id="cook")
    while pump.drain("brainq.turns", "brainq.tools.read_only", "brainq.finalize"):
        pass
    store = pump.wiring.store
    (memory,) = store.memories.list("ann")
    assert memory.text == "The user wrote about an allergy: I am allergic to nuts."
    assert states(pump, handle)["learner"] == "done"
    runner = runner_of(pump)
    for judge in ("short-enough", "relevance"):
        assert runner.run("ann.1", handle.turn_id, judge) == "judged"
    rows = judgements(pump, handle)
    assert (rows["short-enough"].score, rows["short-enough"].reason) == (1.0, "4 words; 50 are enough")
    assert rows["relevance"].method == "rules"

    monkeypatch.setattr("brainq.Client", lambda: nullcontext(pump.client))
    exec(forgetting, {})
    assert memory.text in capsys.readouterr().out
    assert store.memories.list("ann") == []
