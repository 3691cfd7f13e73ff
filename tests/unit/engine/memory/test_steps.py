"""The steps memory, learner and judges: what they write, once, and what a part that fails does to them."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from brainq.contracts.brain import Memory, PromptTemplate
from brainq.contracts.memory import MemoryItem, Observation
from brainq.engine.memory.extractors import ModelMemoryExtractor, RuleMemoryExtractor
from brainq.engine.memory.learner import RuleResearchLearner
from brainq.engine.memory.steps import (
    ExtractMemories,
    MemoryServices,
    ObserveTurn,
    ScheduleJudges,
    make_memory_services,
)
from tests.unit.engine.finalize.support import (
    CANCELLED,
    FAILED,
    TIMED_OUT,
    LiveChain,
    OneItem,
    Rows,
    auxiliary,
    brain_with,
    context,
    ended,
    talk,
)

HERE = (MemoryItem(kind="fact", text="The user is here."),)
SEEN = (Observation(kind="topic", text="boats"),)
SUPPORT = {"support": PromptTemplate(id="support", text="Help.", judges=("relevance", "tone"))}


def machine_of(step: str, own: Any, limit_s: float = 60.0) -> ExtractMemories | ObserveTurn:
    services = MemoryServices(extractor=own, learner=own)
    return ExtractMemories(services, limit_s) if step == "memory" else ObserveTurn(services, limit_s)


# -- which steps there are ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("brain", "steps"),
    [
        (brain_with(), []),
        (brain_with(memory=Memory()), ["memory", "learner"]),
        (brain_with(memory=Memory(extractor=None)), ["learner"]),
        (brain_with(memory=Memory(learner=None)), ["memory"]),
        (brain_with(prompts=SUPPORT), ["judges"]),
        (brain_with(prompts={"plain": PromptTemplate(id="plain", text="x")}), []),
    ],
)
def test_a_part_left_out_has_no_step(brain: Any, steps: list[str]) -> None:
    services = make_memory_services(brain, None)
    known = (ExtractMemories(services), ObserveTurn(services), ScheduleJudges())
    assert [step.name for step in known if step.is_configured(brain)] == steps


def test_parts_from_their_names() -> None:
    own: Any = OneItem()
    assert make_memory_services(brain_with(), None) == MemoryServices()
    parts = make_memory_services(brain_with(memory=Memory()), auxiliary("x"))
    assert isinstance(parts.extractor, ModelMemoryExtractor)
    assert isinstance(parts.learner, RuleResearchLearner)
    assert isinstance(make_memory_services(brain_with(memory=Memory()), None).extractor, RuleMemoryExtractor)
    by_rules = make_memory_services(brain_with(memory=Memory(extractor="rules")), auxiliary("x"))
    assert isinstance(by_rules.extractor, RuleMemoryExtractor)
    mine = make_memory_services(brain_with(memory=Memory(extractor=own, learner=None)), None)
    assert (mine.extractor, mine.learner) == (own, None)


def test_whose_memories_they_are() -> None:
    assert make_memory_services(brain_with(memory=Memory()), None).memory_scope("s1") == "s1"
    by_user = Memory(scope=lambda session_id: f"user-of-{session_id}")
    assert make_memory_services(brain_with(memory=by_user), None).memory_scope("s1") == "user-of-s1"
    nobody: Any = Memory(scope=lambda session_id: None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"Memory\.scope returned None"):
        make_memory_services(brain_with(memory=nobody), None).memory_scope("s1")


# -- memory and learner -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [None, TIMED_OUT, CANCELLED, FAILED], ids=lambda how: how[0].value if how else "")
def test_they_run_however_the_turn_ended(how: Any) -> None:
    turn = ended("I prefer tea.", "", how) if how else ended("I prefer tea.")
    rows, parts = Rows(), make_memory_services(brain_with(memory=Memory(extractor="rules")), None)
    ExtractMemories(parts).run(context("memory", turn, rows=rows))
    ObserveTurn(parts).run(context("learner", turn, rows=rows))
    scope, items = rows.done["memory"]
    assert (scope, [item.text for item in items]) == ("s1", ["The user said: I prefer tea."])
    scope, event_id, seen = rows.done["learner"]
    assert (scope, event_id) == ("s1", "chat_message:7")
    assert {one.kind for one in seen} == ({"topic"} if how in (None, CANCELLED) else {"topic", "open_question"})


def test_they_see_the_whole_turn() -> None:
    own: Any = OneItem()
    said = talk(("user", "Hi"), ("tool", "x"), ("assistant", "Yes."))
    turn = ended(
        "Hi",
        "Yes.\n\nSources:\n- A (a.md)",
        tools=("look",),
        sources=({"kind": "local", "source": "a.md", "title": "A", "quote": "q"},),
        context_pack_json='{"notes": []}',
        turn_number=3,
    )
    rows = Rows(kept=said)
    ExtractMemories(MemoryServices(extractor=own)).run(context("memory", turn, rows=rows))
    (seen,) = own.turns
    assert seen.messages == said
    assert seen.text == "Yes.", "the list of sources is ours, not the model's"
    assert [citation.source for citation in seen.citations] == ["a.md"]
    assert (seen.tools, seen.turn_number, seen.context_pack_json) == (("look",), 3, '{"notes": []}')
    assert seen.step_key == "turn-1:memory"


@pytest.mark.parametrize("step", ["memory", "learner"])
def test_what_they_write_commits_once_however_often_they_run(step: str) -> None:
    rows, own = Rows(), OneItem(returns=HERE if step == "memory" else SEEN)
    machine = machine_of(step, own)
    machine.run(context(step, rows=rows))
    first = rows.done[step]
    own.returns = ()
    machine.run(context(step, rows=rows, tries=2))
    assert rows.done[step] == first
    assert {turn.step_key for turn in own.turns} == {f"turn-1:{step}"}


@pytest.mark.parametrize("step", ["memory", "learner"])
@pytest.mark.parametrize(
    ("own", "error"),
    [
        (OneItem(raises=OSError("away")), "away"),
        (OneItem(returns=None), "NoneType"),
        (OneItem(returns=["a text"]), "returned a str"),
        (OneItem(returns=(1,)), "returned a int"),
    ],
    ids=["raises", "returns nothing", "returns texts", "returns numbers"],
)
def test_a_part_that_fails_fails_its_step_and_writes_nothing(step: str, own: OneItem, error: str) -> None:
    rows = Rows()
    machine = machine_of(step, own)
    with pytest.raises((OSError, TypeError), match=error):
        machine.run(context(step, rows=rows))
    assert not rows.done


@pytest.mark.parametrize("step", ["memory", "learner"])
def test_a_part_that_hangs_is_abandoned(step: str) -> None:
    release = threading.Event()
    own = OneItem(hangs_until=release)
    machine = machine_of(step, own, limit_s=0.05)
    try:
        with pytest.raises(TimeoutError, match=r"did not return within 0\.05 s"):
            machine.run(context(step))
    finally:
        release.set()


def test_a_turn_that_never_began_teaches_nothing_and_its_words_are_still_read() -> None:
    rows, own = Rows(event_id=""), OneItem(returns=HERE)
    parts = MemoryServices(extractor=own, learner=OneItem(returns=SEEN))
    ObserveTurn(parts).run(context("learner", ended(how=CANCELLED), rows=rows))
    ExtractMemories(parts).run(context("memory", ended(how=CANCELLED), rows=rows))
    assert rows.done == {"memory": ("s1", HERE)}


# -- judges -------------------------------------------------------------------------------------------------------


def test_judges_are_planned_then_rung() -> None:
    rows, chain = Rows(), LiveChain()
    turn, brain = ended(request={"prompt_id": "support"}), brain_with(prompts=SUPPORT)
    ScheduleJudges().run(context("judges", turn, brain=brain, chain=chain, rows=rows))
    assert (rows.done["judges"], chain.rung) == (("relevance", "tone"), ["relevance", "tone"])
    ScheduleJudges().run(context("judges", turn, brain=brain, chain=chain, rows=rows, tries=2))
    assert chain.rung == ["relevance", "tone"] * 2, "a doorbell may have been lost: it is rung again"


def test_nothing_is_rung_for_rows_that_were_not_written() -> None:
    rows, chain = Rows(raises=OSError("the disk is full")), LiveChain()
    turn, brain = ended(request={"prompt_id": "support"}), brain_with(prompts=SUPPORT)
    with pytest.raises(OSError, match="disk"):
        ScheduleJudges().run(context("judges", turn, brain=brain, chain=chain, rows=rows))
    assert chain.rung == []


@pytest.mark.parametrize("how", [TIMED_OUT, CANCELLED, FAILED], ids=lambda how: how[0].value)
def test_an_ending_without_an_answer_is_not_judged(how: Any) -> None:
    rows, chain = Rows(), LiveChain()
    turn = ended(how=how, request={"prompt_id": "support"})
    ScheduleJudges().run(context("judges", turn, brain=brain_with(prompts=SUPPORT), chain=chain, rows=rows))
    assert (rows.done["judges"], chain.rung) == ((), [])
