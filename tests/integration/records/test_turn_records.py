"""What is kept and said of a turn beside its answer: hooks, hashes, warnings, numbers, citations, judges' cases."""

from __future__ import annotations

from typing import Any

import pytest

from brainq import Brain, Effect, InvalidInput, JudgeCase, Judgement, PromptTemplate, RunContext
from brainq.contracts.brain import Memory, ThinkLevel
from brainq.contracts.call import ChildTurn
from brainq.contracts.callbacks import PostToolUse, TurnEnd, TurnInfo
from brainq.contracts.memory import RetrievedMemory
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.results import Pending
from brainq.engine.turn.prompt.request_messages import render_hash
from brainq.engine.turn.reflection import PREFIXES
from tests.support.people import Pumps, Watched


class Hooked:
    """A brain whose tools wait for somebody else, and what its hooks were told."""

    def __init__(self, model: Any, **options: Any) -> None:
        self.used: list[tuple[str, dict[str, Any], str]] = []
        self.begun: list[str] = []
        self.over: list[str] = []
        self.tokens: list[str] = []
        self.brain = Brain("hooked", model, "Be of help.", **options)
        self.brain.on_post_tool_use(self._used)
        self.brain.on_turn_start(self._begun)
        self.brain.on_turn_end(self._over)

        @self.brain.tool(effect=Effect.LOCAL_WRITE)
        def order(context: RunContext, what: str) -> Pending:
            self.tokens.append(context.outside_token())
            return Pending(self.tokens[-1])

        @self.brain.tool(effect=Effect.READ_ONLY)
        def ask(question: str) -> ChildTurn:
            return ChildTurn(question)

        @self.brain.tool(effect=Effect.READ_ONLY)
        def look(name: str) -> str:
            return f"saw {name}"

    def _used(self, use: PostToolUse) -> None:
        arguments = use.call.arguments
        assert isinstance(arguments, dict)
        self.used.append((use.call.name, arguments, use.outcome.kind))

    def _begun(self, info: TurnInfo) -> None:
        self.begun.append(info.turn_id)

    def _over(self, end: TurnEnd) -> None:
        self.over.append(end.turn_id)


def test_the_hook_behind_a_call_is_told_of_results_from_outside(pumps: Pumps) -> None:
    hooked = Hooked(Watched(calls(("order", {"what": "a"})), calls(("order", {"what": "b"})), says("Ordered.")))
    pump = pumps(hooked.brain)
    handle = pump.submit("s1", "Order.")
    pump.drain()
    assert hooked.used == [], "nothing has ended yet"
    pump.client.complete_call(hooked.tokens[0], {"order": 7})
    pump.drain()
    pump.client.fail_call(hooked.tokens[1], "sold out")
    assert pump.finish(handle).text == "Ordered."
    assert hooked.used == [("order", {"what": "a"}, "success"), ("order", {"what": "b"}, "failure")]


def test_the_hook_behind_a_call_is_told_of_child_turns(pumps: Pumps) -> None:
    hooked = Hooked(Watched(calls(("ask", {"question": "Why?"})), says("Because."), later="It is so."))
    pump = pumps(hooked.brain)
    assert pump.finish(pump.submit("s1", "Find out.")).text == "Because."
    assert hooked.used == [("ask", {"question": "Why?"}, "success")]


def test_a_compaction_counts_as_a_turn_and_calls_neither_hook(pumps: Pumps) -> None:
    model = Watched(says("One."), later="Another.")
    hooked = Hooked(model)
    pump = pumps(hooked.brain)
    first = pump.submit("s1", "My cat is called Mia.")
    pump.finish(first)
    compaction = pump.client.session("s1").compact()
    assert pump.finish(compaction).ending is Ending.COMPLETED
    last = pump.submit("s1", "Thanks.")
    pump.finish(last)
    decisions = [pump.wiring.store.decisions.get(h.turn_id) for h in (first, compaction, last)]
    assert [decision and decision.turn_number for decision in decisions] == [1, 2, 3]
    assert hooked.begun == hooked.over == [first.turn_id, last.turn_id]


def test_the_results_of_a_review_are_found_in_its_own_history(pumps: Pumps) -> None:
    hooked = Hooked(Watched(calls(("look", {"name": "a"})), says("well")))
    pump = pumps(hooked.brain)
    handle = pump.submit("s1", "Look back.", kind="review")
    pump.finish(handle)
    assert pump.client.state("s1", handle.turn_id).tool_results == {"c1-0": "saw a"}


class Recall:
    def __init__(self, text: str, *, fail: bool = False) -> None:
        self.text, self.fail = text, fail

    def retrieve_for_context(self, query: str, session_id: str) -> RetrievedMemory:
        if self.fail:
            raise RuntimeError("away")
        return RetrievedMemory(text=self.text)


def packed(answer: str, *, pack: Any = None, recall: Recall | None = None, **options: Any) -> Brain:
    memory = None if recall is None else Memory(recall, None, None)
    brain = Brain("packed", Watched(says(answer), later=answer), "Be of help.", memory=memory, **options)

    @brain.tool(effect=Effect.READ_ONLY)
    def get_context_pack(topic: str, context: RunContext) -> dict[str, Any]:
        """Context.

        Args:
            topic: words
        """
        if pack is None:
            raise ValueError("there is no pack")
        context.cite_local("notes/boats.md", title="Care of boats", quote="Boats are painted every other spring.")
        context.cite_web("https://example.com/ropes/")
        return pack

    return brain


def test_the_hash_of_the_context_stands_apart_from_that_of_the_prompt(pumps: Pumps) -> None:
    def decision(brain: Brain) -> Any:
        pump = pumps(brain)
        handle = pump.submit("s1", "Well?")
        pump.finish(handle)
        return pump.wiring.store.decisions.get(handle.turn_id)

    bare = decision(Brain("bare", Watched(says("Hm.")), "Be of help."))
    assert (bare.context_hash, bare.prompt_hash) == ("", render_hash("Be of help."))
    one, same = (decision(packed("Hm.", pack={"facts": [1]}, recall=Recall("a cat"))) for _ in range(2))
    other = decision(packed("Hm.", pack={"facts": [2]}, recall=Recall("a cat")))
    memory = decision(packed("Hm.", pack={"facts": [1]}, recall=Recall("a dog")))
    assert one.context_hash == same.context_hash
    assert len({one.context_hash, other.context_hash, memory.context_hash, "", one.prompt_hash}) == 5
    assert {d.prompt_hash for d in (one, other, memory)} == {bare.prompt_hash}


def test_a_result_says_when_memory_or_the_pack_failed(pumps: Pumps) -> None:
    pump = pumps(packed("Hm.", recall=Recall("", fail=True)))
    assert pump.finish(pump.submit("s1", "Well?")).warnings == (
        "the context pack was not read before the first step: its call failed",
        "memory was not read before the first step: its call failed",
    )
    fine = pumps(packed("Hm.", pack={}, recall=Recall("a cat")))
    assert fine.finish(fine.submit("s2", "Well?")).warnings == ()


@pytest.mark.parametrize(
    ("answer", "cited"),
    [
        ("I do not know.", []),
        ("See notes/boats.md.", ["notes/boats.md"]),
        ("It is in BOATS.MD.", ["notes/boats.md"]),
        ("As in care of boats, I would wait.", ["notes/boats.md"]),
        ("Boats are painted every\nother spring.", ["notes/boats.md"]),
        ("Ropes: https://example.com/ropes", ["https://example.com/ropes/"]),
        ("Paint the boat.", []),
    ],
)
def test_what_the_pack_cites_stands_under_answers_that_use_it(pumps: Pumps, answer: str, cited: list[str]) -> None:
    pump = pumps(packed(answer, pack={"facts": []}, show_citations=True))
    result = pump.finish(pump.submit("s1", "Well?"))
    assert [c.source for c in (*result.local_citations, *result.web_citations)] == cited
    assert ("Sources:" in result.text) is bool(cited)


class Keeps:
    """A judge that keeps its cases."""

    name = "keeps"

    def __init__(self) -> None:
        self.cases: list[JudgeCase] = []

    def judge(self, case: JudgeCase) -> Judgement:
        self.cases.append(case)
        return Judgement(score=1, reason="fine")


def test_a_brains_own_prompt_is_judged_and_judges_see_what_the_answer_was_given_on(pumps: Pumps) -> None:
    judge = Keeps()
    prompts = [
        PromptTemplate(id="cook", text="You cook, in turn {turn_number}.", judges=("keeps",)),
        PromptTemplate(id="plain", text="Plain."),
    ]
    model = Watched(says("Salt it."), later="As before.")
    brain = Brain("kitchen", model, prompts=prompts, judges=[judge], prompt_id="cook")
    pump = pumps(brain)
    pump.finish(pump.submit("s1", "How do I boil an egg?"))
    second = pump.submit("s1", "And then?")
    pump.finish(second)
    pump.finish(pump.submit("s1", "And now?", prompt_id="plain"))
    pump.finish(pump.submit("s1", "And here?", system_prompt="You are somebody else."))

    first_case, second_case = judge.cases
    assert (first_case.system_prompt, first_case.history) == ("You cook, in turn 1.", "")
    assert second_case.system_prompt == "You cook, in turn 2."
    assert second_case.history == "[user] How do I boil an egg?\n[assistant] Salt it."
    decision = pump.wiring.store.decisions.get(second.turn_id)
    assert decision is not None
    assert decision.prompt_id == "cook"


def test_a_default_prompt_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match="'nope' is not one of the brain's prompts; they are cook"):
        Brain("b", "openai:gpt-5", prompts=[PromptTemplate(id="cook", text="x")], prompt_id="nope")


def test_the_version_and_the_tags_of_a_template_are_recorded(pumps: Pumps) -> None:
    template = PromptTemplate(id="ask", text="Be of help.", version="7", tags=("sales", "eu"))
    brain = Brain("told", Watched(says("Hm.")), prompts=[template], prompt_id="ask", thinking="high")
    pump = pumps(brain)
    handle = pump.submit("s1", "Well?", prompt_tags=("trial", "eu"))
    pump.finish(handle)
    found = pump.wiring.store.decisions.get(handle.turn_id)
    assert found is not None
    assert (found.prompt_id, found.prompt_version, found.prompt_tags) == ("ask", "7", ("trial", "eu", "sales"))
    assert found.prompt_hash == render_hash("Be of help.", PREFIXES[ThinkLevel.HIGH])
