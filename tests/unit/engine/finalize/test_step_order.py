"""Which steps go ahead of one that is to be tried again."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brainq.app.wiring.finalizer import steps_of
from brainq.contracts.brain import Memory
from brainq.engine.brain.middleware import Hooks
from brainq.engine.finalize.step_order import StepHistory, StepOrder
from brainq.engine.memory.steps import make_memory_services
from tests.support.parts import brain_of
from tests.support.stand_in import stand_in
from tests.unit.engine.finalize.support import brain_with, context


class Own:
    def __init__(self, name: str, *needs: str) -> None:
        self.name = name
        if needs:
            self.needs = needs

    def is_configured(self, brain: Any) -> bool:
        return True

    def run(self, context: Any) -> None: ...


BRAIN = brain_of("tone", memory=Memory(retriever=None))
ORDER = StepOrder(
    steps_of(BRAIN, make_memory_services(BRAIN, None), [Own("extra"), Own("reader", "memory"), Own("last", "reader")])
)
BEHIND = ["learner", "judges", "decision", "extra", "reader", "last"]


def round_of(base: str, past: StepHistory, *failing: str) -> tuple[list[str], StepHistory]:
    went: list[str] = []
    last = ""
    while name := ORDER.ahead_of(base, past, last):
        went.append(name)
        last = name
        past = past.with_failed(name, past.tries(name) + 1, 0) if name in failing else past.with_done(name)
    return went, past


@pytest.mark.parametrize(
    ("base", "ahead"),
    [
        ("citations", []),
        ("log", []),
        ("result", []),
        ("memory", ["learner", "judges", "decision", "extra"]),
        ("learner", BEHIND[1:]),
        ("decision", ["extra", "reader", "last"]),
        ("last", []),
        ("unknown here", []),
    ],
)
def test_what_does_not_need_it_goes_ahead_of_a_step(base: str, ahead: list[str]) -> None:
    assert round_of(base, StepHistory())[0] == ahead


@pytest.mark.parametrize(
    ("step", "changed", "joined"),
    [
        ("citations", {}, ["log", "result"]),
        ("log", {}, ["result"]),
        ("result", {}, []),
        ("decision", {}, []),
        ("extra", {}, []),
        ("unknown here", {}, []),
        ("log", {"tries": 2}, []),
        ("log", {"lost": 1}, []),
        ("log", {"base": "usage", "past": "{}"}, []),
        ("log", {"past": "{}"}, []),
    ],
)
def test_what_leads_to_the_result_is_done_under_one_claim(
    step: str, changed: dict[str, Any], joined: list[str]
) -> None:
    at = context(step, brain=BRAIN)
    at = replace(at, claim=replace(at.claim, **changed))
    assert [each.name for each in ORDER.joined_to(at)] == joined


def test_a_text_that_gets_its_sources_is_read_again_before_it_is_logged() -> None:
    at = context("citations", brain=brain_of("tone", show_citations=True))
    assert ORDER.joined_to(at) == ()
    assert [each.name for each in ORDER.joined_to(replace(at, claim=replace(at.claim, step="log")))] == ["result"]


def test_a_middleware_is_told_of_each_step_under_its_own_claim() -> None:
    brain = brain_with(show_citations=False, hooks=Hooks(before_final_step=(stand_in(object()),)))
    assert ORDER.joined_to(context("log", brain=brain)) == ()


def test_what_failed_ahead_goes_again_in_the_next_round_and_what_is_done_does_not() -> None:
    went, past = round_of("memory", StepHistory(), "extra")
    assert went == BEHIND[:4]
    assert past.tries("extra") == 1
    assert ORDER.ahead_of("memory", past, untried=True) == ""
    assert round_of("memory", past)[0] == ["extra"]
    assert ORDER.next_step("memory", past) == "extra"
    assert ORDER.next_step("memory", past.with_done("extra")) == "reader"


def test_what_went_ahead_is_read_as_it_was_written() -> None:
    past = StepHistory().with_done("decision").with_failed("a:b", 2, 1).with_failed("end", 1, 0)
    assert StepHistory.read(past.text) == past
    assert (past.tries("a:b"), past.lost("a:b"), past.tries("decision")) == (2, 1, 0)
    assert StepHistory.read(past.with_done("end").text).failed == {"a:b": (2, 1)}
    assert StepHistory.read("") == StepHistory()
