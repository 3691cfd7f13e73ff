"""What follows a step, and what the result waits for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from brainq.app.wiring.finalizer import steps_of
from brainq.contracts.brain import Memory
from brainq.engine.brain.middleware import Hooks
from brainq.engine.finalize.step_order import StepOrder
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


@pytest.mark.parametrize("step", ["citations", "log", "result"])
def test_the_result_waits_for_what_it_needs(step: str) -> None:
    assert ORDER.leads_to_result(step)


@pytest.mark.parametrize("step", ["usage", "memory", "learner", "decision", "extra", "reader", "end", "unknown here"])
def test_the_result_waits_for_nothing_else(step: str) -> None:
    assert not ORDER.leads_to_result(step)


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
        ("log", {"done_before": ("decision",)}, []),
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


def test_the_chain_goes_on_with_what_is_not_done() -> None:
    assert [ORDER.next_step(name) for name in ("citations", "memory", "last")] == ["log", "learner", ""]
    assert ORDER.next_step("memory", ["learner", "judges"]) == "decision"
    assert ORDER.next_step("judges", ["decision", "extra", "reader", "last"]) == ""


def test_after_a_step_of_another_release_the_chain_goes_on_with_the_log() -> None:
    assert ORDER.next_step("unknown here") == "log"
    assert StepOrder([Own("own")]).next_step("unknown here") == ""


def test_a_step_needs_what_it_says() -> None:
    assert (ORDER.needs("reader"), ORDER.needs("extra"), ORDER.needs("unknown here")) == (("memory",), (), ())


@pytest.mark.parametrize(
    ("first", "last", "has"),
    [
        ("citations", "log", False),
        ("citations", "result", True),
        ("log", "memory", True),
        ("result", "result", True),
        ("memory", "decision", False),
        ("unknown here", "unknown here", False),
    ],
)
def test_the_turn_is_over_for_its_caller_with_the_result(first: str, last: str, has: bool) -> None:
    assert ORDER.has_result(first, last) is has


def test_the_log_may_write_the_decision_s_row() -> None:
    at = context("log", brain=BRAIN)
    assert ORDER.beside(at) == ("decision",)
    assert ORDER.beside(replace(at, claim=replace(at.claim, tries=2))) == ()
    assert ORDER.beside(replace(at, brain=brain_with(hooks=Hooks(before_final_step=(stand_in(object()),))))) == ()


def test_a_decision_that_the_brain_keeps_elsewhere_is_no_row_of_the_log_s() -> None:
    assert ORDER.beside(context("log", brain=brain_with(decisions=stand_in(object())))) == ()
    assert StepOrder([Own("own")]).beside(context("log", brain=BRAIN)) == ()
