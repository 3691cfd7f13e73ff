"""Pinned brains, with two builds at once: each bell is offered to the wrong build first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq.contracts.brain import PromptTemplate
from brainq.contracts.build import Pin
from brainq.contracts.call import ChildTurn
from brainq.contracts.evaluation import JudgeCase, Judgement
from brainq.contracts.status import Effect, Ending, StopReason
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.declared import brain_digest
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from brainq.errors import BuildUnserved, InvalidInput, NotFound
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
WORDS = {
    "brainq.turns": "turns",
    "brainq.tools.read_only": "read_only",
    "brainq.tools.network": "network",
    "brainq.finalize": "finalize",
    "brainq.judges": "judges",
}


class Verdict:
    """A judge that says which brain is its own."""

    def __init__(self, name: str, prompt: str) -> None:
        self.name = name
        self._prompt = prompt

    def judge(self, case: JudgeCase) -> Judgement:
        return Judgement(score=1.0, reason=f"by {self._prompt}")


def shop(prompt: str, pin: Pin | None, replies: list[Any] | None = None) -> Brain:
    """A brain whose digest follows its prompt; its answer says which it is."""
    said = replies or [calls(("look", {})), calls(("order", {})), says(f"by {prompt}")]
    brain = Brain("shop", ScriptedProvider(said), prompt, pin=pin)

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        return f"seen by {prompt}"

    @brain.tool(effect=Effect.NETWORK)
    def order() -> str:  # pyright: ignore[reportUnusedFunction]
        """Order."""
        return f"ordered by {prompt}"

    return brain


def serve(pump: Pump) -> None:
    """Its worker is alive, and reads its build's queues, too."""
    name = f"coordinator@{pump.wiring.owner}"
    state, build = pump.wiring.state, pump.wiring.build
    state.redis.sadd(state.keys.workers, name)
    state.builds.announce(name, build, "coordinator", WORDS.values(), 60.0)


def hand_over(wrong: Pump, right: Pump, queue: str, said: str = "dropped: other_build") -> str:
    """The wrong build pops the bell, and the right one finds it in its own queue. What the right one did."""
    bell = wrong.take(queue)
    assert bell is not None
    assert wrong.answer(bell) == said
    assert wrong.take(queue) is None, "nothing spins on it"
    passed = right.take(f"{queue}@{right.wiring.build.name}")
    assert passed is not None
    return right.answer(passed)


def two(pumps: Pumps, pin: Pin | None = "turn") -> tuple[Pump, Pump]:
    old = pumps(shop("old prompt", pin), owner="old", build="1.4")
    new = pumps(shop("new prompt", pin), owner="new", build="1.5")
    for pump in (old, new):
        serve(pump)
    return old, new


def test_a_turn_ends_with_the_brain_that_began_it_whoever_pops_its_bells(pumps: Pumps) -> None:
    old, new = two(pumps)
    handle = old.submit("s1", "Apples?")
    began = old.take("brainq.turns")
    assert began is not None
    old.answer(began)
    for queue in ("brainq.tools.read_only", "brainq.turns", "brainq.tools.network", "brainq.turns", "brainq.finalize"):
        assert "dropped" not in hand_over(new, old, queue)
    result = old.finish(handle)
    assert result.text == "by old prompt"
    said = [message.content for message in handle.transcript() if message.role == "tool"]
    assert said == ["seen by old prompt", "ordered by old prompt"]
    assert result.warnings == ()


def test_an_unpinned_turn_goes_on_with_what_is_there_and_says_so(pumps: Pumps) -> None:
    old, new = two(pumps, None)
    handle = old.submit("s1", "Apples?")
    began = old.take("brainq.turns")
    assert began is not None
    old.answer(began)
    new.drain("brainq.tools.read_only", "brainq.turns", "brainq.tools.network", "brainq.turns")
    result = new.finish(handle)
    (warning,) = result.warnings
    digests = [brain_digest(pump.wiring.brains.default) for pump in (old, new)]
    assert f"build 1.4 (brain {digests[0]}), then build 1.5 (brain {digests[1]})" in warning


def test_a_turn_whose_build_is_gone_says_so_and_is_released(pumps: Pumps) -> None:
    old, new = two(pumps)
    handle = old.submit("s1", "Apples?")
    began = old.take("brainq.turns")
    assert began is not None
    old.answer(began)
    gone(old)
    assert handle.explain().startswith("waits for build 1.4, to whose brain it is pinned")
    assert [(build.name, build.needed) for build in new.client.versions().builds] == [("1.4", 1), ("1.5", 0)]
    assert new.client.release_build("1.4", "1.5").brains == ("shop",)
    new.drain("brainq.tools.read_only", "brainq.turns", "brainq.tools.network", "brainq.turns")
    result = new.finish(handle)
    assert result.ending is Ending.COMPLETED
    assert "build 1.4" in result.warnings[0]
    assert "waits" not in handle.explain()


def gone(pump: Pump) -> None:
    """Its worker said so more than a minute ago."""
    state, digest = pump.wiring.state, pump.wiring.build.brains[0].digest
    state.builds.withdraw(f"coordinator@{pump.wiring.owner}")
    for word in WORDS.values():
        state.redis.pexpire(state.keys.serves(word, digest), 86_400_000 - 61_000)


def test_a_session_whose_build_is_gone_for_a_minute_refuses_turns_with_the_remedy(pumps: Pumps) -> None:
    old, new = two(pumps, "session")
    old.finish(old.submit("s1", "Apples?"))
    gone(old)
    with pytest.raises(BuildUnserved, match=r"brainq versions release 1\.4 --to"):
        new.submit("s1", "Pears?")
    (row,) = [row for row in new.wiring.store.turns.list() if row.state == "rejected"]
    assert row.session_id == "s1"
    new.client.release_build("1.4", "1.5")
    assert new.submit("s1", "Pears?").turn_id


def test_a_pinned_turn_that_nobody_takes_ends_by_its_deadline_and_says_for_whom_it_waited(pumps: Pumps) -> None:
    old, new = two(pumps)
    handle = old.submit("s1", "Apples?")
    began = old.take("brainq.turns")
    assert began is not None
    old.answer(began)
    gone(old)
    old.wiring.state.redis.hset(old.wiring.state.keys.turn("s1", handle.turn_id) + ":budget", "deadline", 1)
    new.sweep()
    new.drain("brainq.turns")
    snapshot = handle.snapshot()
    assert snapshot is not None
    assert (snapshot.ending, snapshot.stop_reason) == (Ending.TIMED_OUT, StopReason.DEADLINE)
    error = old.wiring.state.redis.hget(old.wiring.state.keys.turn("s1", handle.turn_id), "error")
    assert str(error).startswith("waits for build 1.4, to whose brain it is pinned")


def test_a_child_turn_is_begun_by_any_build_and_keeps_to_that_one(pumps: Pumps) -> None:
    def asking(prompt: str) -> Brain:
        brain = shop(prompt, "turn", [calls(("ask", {})), says("Done."), says("A child.")])

        @brain.tool(effect=Effect.READ_ONLY)
        def ask() -> Any:  # pyright: ignore[reportUnusedFunction]
            """Have another answer."""
            return ChildTurn("Pears?")

        return brain

    old = pumps(asking("old prompt"), owner="old", build="1.4")
    new = pumps(asking("new prompt"), owner="new", build="1.5")
    for pump in (old, new):
        serve(pump)
    handle = old.submit("s1", "Apples?")
    old.drain("brainq.turns", "brainq.tools.read_only")
    child = next(row for row in old.wiring.store.turns.list() if row.turn_id != handle.turn_id)
    key = old.wiring.state.keys.turn(child.session_id, child.turn_id)
    bell = new.take("brainq.turns")
    if bell is not None:
        new.answer(bell)
    pinned = old.wiring.state.redis.hget(key, "pin_build")
    assert pinned in ("1.4", "1.5")


def judged(prompt: str) -> Brain:
    """Its judge is another one than that of a brain with another prompt."""
    name = prompt.split()[0]
    prompts, own = [PromptTemplate(id="support", text="Help.", judges=(name,))], [Verdict(name, prompt)]
    return Brain("shop", ScriptedProvider([says("Yes.")]), prompt, pin="turn", prompts=prompts, judges=own)


def test_a_judge_of_the_build_that_began_the_turn_judges_it_whoever_pops_its_bell(pumps: Pumps) -> None:
    old = pumps(judged("old prompt"), owner="old", build="1.4")
    new = pumps(judged("new prompt"), owner="new", build="1.5")
    for pump in (old, new):
        serve(pump)
    handle = old.submit("s1", "Apples?", prompt_id="support")
    old.drain("brainq.turns", "brainq.finalize")
    assert hand_over(new, old, "brainq.judges", "passed") == "judged"
    (row,) = old.wiring.store.judgements.of_turn(handle.turn_id)
    assert (row.judge, row.state, row.tries, row.reason) == ("old", "done", 1, "by old prompt")


def test_what_a_ramp_and_a_release_refuse(pumps: Pumps) -> None:
    old, new = two(pumps)
    assert new.client.ramp_build("1.5", 10).says == "10 % of sessions begin on 1.5, the others on 1.4"
    serve(old)
    assert old.wiring.build.ramp is not None
    assert new.client.versions().ramp.startswith("10 %")
    assert new.client.ramp_build("1.5", 0).says.startswith("the ramp has ended: every session")
    with pytest.raises(InvalidInput, match=r"build '1\.6' has no running workers"):
        new.client.ramp_build("1.6", 10)
    with pytest.raises(NotFound):
        new.client.release_build("0.9", "1.5")
    with pytest.raises(InvalidInput):
        new.client.release_build("1.4", "1.4")
