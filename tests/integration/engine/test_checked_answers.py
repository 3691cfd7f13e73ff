"""Answers that have to fit a schema: checked, asked for again, and parsed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from brainq import Brain, Effect, InvalidInput, NoParsedOutput, RunContext, ScriptedProvider
from brainq.contracts.event import EventKind
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending, StopReason
from brainq.engine.models.scripted import calls, says
from tests.support.pump import Pump


class Order(BaseModel):
    sku: str
    count: int


class Bigger(Order):
    price: float


GOOD = '{"sku": "a-1", "count": 3}'
WRONG = '{"sku": "a-1", "count": "three"}'


class Answers:
    """A brain whose model says `replies`, one a step, and what it was shown at each."""

    def __init__(self, pumps: Callable[..., Pump], *replies: ModelReply, **brain: Any) -> None:
        self.seen: list[ModelRequest] = []

        def answer(request: ModelRequest) -> ModelReply:
            self.seen.append(request)
            return replies[request.step - 1]

        self.brain = Brain("orders", ScriptedProvider(rules=answer), "Take orders.", **brain)

        @self.brain.tool(effect=Effect.READ_ONLY)
        def look(context: RunContext) -> str:
            context.cite_local("stock.txt")
            return "3 left"

        self.pump = pumps(self.brain)

    def run(self, **options: Any) -> Any:
        self.handle = self.pump.submit("s1", "Three of a-1.", **options)
        return self.pump.finish(self.handle)


@pytest.mark.parametrize("text", [GOOD, f"\n {GOOD}\n", f"```json\n{GOOD}\n```"], ids=["plain", "spaces", "fenced"])
@pytest.mark.parametrize("schema", [Order, Order.model_json_schema()], ids=["class", "dict"])
def test_an_answer_that_fits_is_parsed(pumps: Callable[..., Pump], text: str, schema: Any) -> None:
    answers = Answers(pumps, says(text))
    result = answers.run(output_schema=schema)

    assert (result.stop_reason, result.steps) == (StopReason.ANSWERED, 1)
    assert result.parsed == {"sku": "a-1", "count": 3}
    order = result.parsed_as(Order)
    assert (order.sku, order.count) == ("a-1", 3)
    with pytest.raises(ValidationError):
        result.parsed_as(Bigger)
    kept = answers.pump.wiring.store.turns.result(answers.handle.turn_id)
    assert kept is not None
    assert kept.parsed == result.parsed
    assert answers.seen[0].output_schema == Order.model_json_schema()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (WRONG, "$.count: wants integer, got string"),
        ("this is no JSON at all", "it is not JSON (Expecting value"),
        ('{"sku": "a-1", "count": NaN}', "it is not JSON (NaN is not JSON)"),
        ("", "it is empty"),
    ],
)
def test_one_that_does_not_fit_is_asked_for_again_and_told_why(
    pumps: Callable[..., Pump], text: str, problem: str
) -> None:
    answers = Answers(pumps, says(text), says(GOOD))
    result = answers.run(output_schema=Order)

    assert (result.stop_reason, result.steps, result.text) == (StopReason.ANSWERED, 2, GOOD)
    assert result.parsed_as(Order).count == 3
    note = answers.seen[1].messages[-1]
    assert note.role == "user"
    assert f"Your answer does not fit the output schema: {problem}" in note.content
    assert json.dumps(Order.model_json_schema()) in note.content
    assert result.warnings == ("1 reply of the model did not fit the output schema",)
    [ended] = [event for event in answers.handle.events() if event.kind is EventKind.STEP_ENDED]
    assert ended.data["problem"] == "output"


def test_a_model_that_never_gets_it_right_ends_the_turn_with_a_reason_of_its_own(pumps: Callable[..., Pump]) -> None:
    answers = Answers(pumps, *[says(WRONG)] * 5)
    result = answers.run(output_schema=Order)

    assert (result.ending, result.stop_reason) == (Ending.COMPLETED, StopReason.INVALID_OUTPUT)
    assert (result.steps, result.text, result.parsed) == (3, WRONG, None)
    assert (result.error or "").startswith("the answer does not fit its schema: ")
    with pytest.raises(NoParsedOutput, match=r"invalid_output.*does not fit"):
        result.parsed_as(Order)


def test_the_budget_of_steps_bounds_it_too(pumps: Callable[..., Pump]) -> None:
    result = Answers(pumps, says(WRONG), says(GOOD)).run(output_schema=Order, limits={"max_steps": 1})

    assert (result.stop_reason, result.steps) == (StopReason.INVALID_OUTPUT, 1)


def test_replies_with_calls_and_turns_without_a_schema_are_not_held_to_it(pumps: Callable[..., Pump]) -> None:
    answers = Answers(pumps, calls(("look", {}), text="I look."), says(GOOD), show_citations=True)
    result = answers.run(output_schema=Order)
    assert result.parsed == {"sku": "a-1", "count": 3}
    assert result.text == GOOD, "nothing is appended to what is read as JSON"
    assert [citation.source for citation in result.local_citations] == ["stock.txt"]

    plain = Answers(pumps, says(GOOD)).run()
    assert (plain.text, plain.parsed) == (GOOD, None)
    with pytest.raises(NoParsedOutput):
        plain.parsed_as(Order)


def test_an_answer_that_was_cut_off_is_not_asked_for_again(pumps: Callable[..., Pump]) -> None:
    result = Answers(pumps, says(GOOD[:10], finish="length")).run(output_schema=Order)
    assert (result.stop_reason, result.steps, result.parsed) == (StopReason.LENGTH, 1, None)


def test_a_brain_has_a_schema_for_the_turns_that_bring_none(pumps: Callable[..., Pump]) -> None:
    answers = Answers(pumps, says(WRONG), says(GOOD), output_schema=Order)
    assert answers.run().parsed_as(Order) == Order(sku="a-1", count=3)
    review = answers.pump.finish(answers.pump.submit("s2", "How was it?", kind="review"))
    assert (review.text, review.stop_reason) == (WRONG, StopReason.ANSWERED)


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "dict"}, "must be a JSON schema: 'dict' is not valid"),
        ({"$ref": "#/$defs/nope"}, "it refers to '#/$defs/nope', which is not in it"),
        ({"$ref": "https://example.com/a.json"}, "it refers to 'https://example.com/a.json'"),
        ("object", "must be a JSON schema as a dict, or a pydantic model class, got str"),
        (int, "must be a JSON schema as a dict, or a pydantic model class, got type"),
        ({"default": float("nan")}, "it is not JSON"),
    ],
)
def test_a_schema_that_is_none_is_refused_where_it_enters(
    pumps: Callable[..., Pump], schema: Any, problem: str
) -> None:
    answers = Answers(pumps)
    with pytest.raises(InvalidInput, match=r"^output_schema: ") as caught:
        answers.run(output_schema=schema)
    assert problem in str(caught.value)
    with pytest.raises(InvalidInput, match=r"^output_schema: "):
        Brain("b", "openai:gpt-5", output_schema=schema)
