"""How a turn's model is asked: brain, turn, and what a session's redaction keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from brainq import Brain, Effect, ModelOptions, ScriptedProvider, StepChoice, StepInfo, ToolError
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.status import Ending
from brainq.contracts.turn import TurnResult
from brainq.engine.models.scripted import calls, says
from brainq.errors import InvalidInput
from tests.support.pump import Pump

OPTIONS = ModelOptions(temperature=1, seed=7, extra_headers={"x-key": "s3cret"}, extra_body={"k": "s3cret"})


class Asked:
    """A brain whose model looks twice, then answers; `options` are those it was asked with, a step."""

    def __init__(self, pumps: Callable[..., Pump], options: Any = None) -> None:
        self.requests: list[ModelRequest] = []
        self.brain = Brain("asked", ScriptedProvider(rules=self._answer), options=options)
        self.brain.tool(effect=Effect.READ_ONLY, name="look")(lambda: "pears")
        self.pump = pumps(self.brain)

    def _answer(self, request: ModelRequest) -> ModelReply:
        self.requests.append(request)
        return calls(("look", {})) if request.step < 3 else says("Done.")

    @property
    def options(self) -> list[ModelOptions]:
        return [request.options for request in self.requests]

    def run(self, **options: Any) -> None:
        handle = self.pump.submit("s1", "Look twice.", **options)
        assert self.pump.finish(handle).ending is Ending.COMPLETED


def test_the_turns_word_stands_over_the_brains(pumps: Callable[..., Pump]) -> None:
    asked = Asked(pumps, OPTIONS)
    asked.run(options={"temperature": 0, "tool_choice": "required"})
    said = {**OPTIONS.explicit(), "temperature": 0.0}
    assert [options.explicit() for options in asked.options] == [said | {"tool_choice": "required"}, said, said]
    asked.run()
    assert asked.options[3:] == [OPTIONS] * 3


def test_what_may_be_secret_is_in_neither_store(pumps: Callable[..., Pump]) -> None:
    asked = Asked(pumps, OPTIONS)
    asked.run(options={"seed": 11})
    redis = asked.pump.wiring.state.redis
    stored = b"".join(
        redis.dump(key) or b""
        for key in redis.scan_iter(count=1000)  # pyright: ignore[reportUnknownMemberType]
    )
    assert stored
    assert b"s3cret" not in stored
    path = Path(asked.pump.settings.sql_url.get_secret_value().removeprefix("sqlite:///"))
    kept = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert b"Look twice." in kept
    assert b"s3cret" not in kept
    assert asked.options[0].extra_headers == {"x-key": "s3cret"}


@pytest.mark.parametrize("choice", ["lok", "wipe"])
def test_a_tool_that_is_not_there_is_refused_where_the_turn_enters(pumps: Callable[..., Pump], choice: str) -> None:
    asked = Asked(pumps)
    with pytest.raises(InvalidInput, match=r"options\.tool_choice"):
        asked.pump.submit("s1", "Look.", options={"tool_choice": choice})
    assert asked.pump.client.turns() == ()


def test_a_brain_that_forces_what_it_has_not_fails_its_turns_with_the_reason(pumps: Callable[..., Pump]) -> None:
    asked = Asked(pumps, {"tool_choice": "lok"})
    handle = asked.pump.submit("s1", "Look.")
    result = asked.pump.finish(handle)
    assert result.ending is Ending.FAILED
    assert "did you mean 'look'?" in (result.error or "")


def test_a_tool_of_the_clients_may_be_forced(pumps: Callable[..., Pump]) -> None:
    asked = Asked(pumps)
    asked.run(options={"tool_choice": "ask"}, client_tools=[{"name": "ask"}])
    assert [options.tool_choice for options in asked.options] == ["ask", None, None]


def test_the_tool_to_call_is_among_those_that_the_model_sees(pumps: Callable[..., Pump]) -> None:
    asked = Asked(pumps)
    for number in range(70):
        asked.brain.tool(effect=Effect.READ_ONLY, name=f"walk_{number}")(lambda: "far")
    asked.run(options={"tool_choice": "walk_69"})
    shown = [{spec.name for spec in request.tools} for request in asked.requests]
    assert [("walk_69" in names, len(names) < 71) for names in shown] == [(True, True)] * 3
    assert shown[0] == shown[1] == shown[2]


class Models:
    """A brain of a dear model; who was asked, a step. It chooses a cheap model for steps that follow calls, or as
    `choose` says."""

    def __init__(
        self, pumps: Callable[..., Pump], choose: Callable[[StepInfo], Any] | None = None, **fields: Any
    ) -> None:
        self.asked: list[tuple[str, ModelOptions]] = []
        self.infos: list[StepInfo] = []
        self.choose = choose or self._cheap_after_the_first
        self.dear, self.cheap = self._model("dear"), self._model("cheap")
        self.brain = Brain("two", self.dear, for_step=self._choose, **fields)
        self.brain.tool(effect=Effect.READ_ONLY, name="look")(self._look)
        self.pump = pumps(self.brain)

    def _model(self, name: str) -> ScriptedProvider:
        def answer(request: ModelRequest) -> ModelReply:
            self.asked.append((name, request.options))
            usage = TokenUsage(input_tokens=100, output_tokens=10)
            return (calls(("look", {}), usage=usage), calls(("look", {}), usage=usage), says("Done.", usage=usage))[
                request.step - 1
            ]

        return ScriptedProvider(rules=answer, name=name)

    def _choose(self, info: StepInfo) -> Any:
        self.infos.append(info)
        return self.choose(info)

    def _cheap_after_the_first(self, info: StepInfo) -> StepChoice | None:
        if info.step == 1:
            return None
        return StepChoice(model=self.cheap, options={"temperature": 0, "tool_choice": "required"})

    def _look(self) -> str:
        if len(self.asked) == 1:
            raise ToolError("The shelf is locked.")
        return "pears"

    def run(self, **options: Any) -> TurnResult:
        return self.pump.finish(self.pump.submit("s1", "Look.", **options))


def test_a_cheaper_model_takes_chosen_steps_and_is_what_they_are_billed_for(pumps: Callable[..., Pump]) -> None:
    models = Models(pumps, options={"temperature": 1, "seed": 7})
    result = models.run(options={"temperature": 0.5})
    assert [(name, options.explicit()) for name, options in models.asked] == [
        ("dear", {"temperature": 0.5, "seed": 7}),
        ("cheap", {"temperature": 0, "seed": 7, "tool_choice": "required"}),
        ("cheap", {"temperature": 0, "seed": 7, "tool_choice": "required"}),
    ]
    assert [(spend.step, spend.model) for spend in result.spends] == [(1, "dear"), (2, "cheap"), (3, "cheap")]


def test_what_is_meant_for_one_service_is_told_to_no_other(pumps: Callable[..., Pump]) -> None:
    models = Models(pumps, options=OPTIONS)
    models.run()
    own, other, _ = [options.explicit() for _, options in models.asked]
    assert own == OPTIONS.explicit()
    assert other == {"temperature": 0, "seed": 7, "tool_choice": "required"}
    mine = StepChoice(model=models.cheap, options=ModelOptions(extra_headers={"x-mine": "1"}))

    def chosen(info: StepInfo) -> StepChoice:
        return mine

    models.choose = chosen
    models.asked.clear()
    models.run()
    assert {str(options.extra_headers) for _, options in models.asked} == {"{'x-mine': '1'}"}


def test_what_is_known_of_a_step(pumps: Callable[..., Pump]) -> None:
    models = Models(pumps, lambda info: None)
    models.run(metadata={"order": 17})
    known = [(one.step, one.calls, one.failed_calls, one.usage.total) for one in models.infos]
    assert known == [(1, 0, 0, 0), (2, 1, 1, 110), (3, 2, 0, 220)]
    assert {name for name, _ in models.asked} == {"dear"}
    assert all(one.turn.metadata == {"order": 17} and one.turn.session_id == "s1" for one in models.infos)


WRONG: list[tuple[Callable[[StepInfo], Any], str]] = [
    (lambda info: {"model": "dear"}, "for_step: it must return a StepChoice or None, got dict"),
    (lambda info: 1 / 0, "for_step: it raised ZeroDivisionError"),
    (lambda info: StepChoice(model="nobody:m"), "'nobody' is not a known provider"),
    (lambda info: StepChoice(options={"heat": 1}), "options.heat: there is no such option"),
    (lambda info: StepChoice(options={"tool_choice": "lok"}), "did you mean 'look'?"),
]


@pytest.mark.parametrize(("choice", "words"), WRONG)
def test_a_choice_that_cannot_be_made_fails_the_turn_with_the_reason(
    pumps: Callable[..., Pump], choice: Callable[[StepInfo], Any], words: str
) -> None:
    models = Models(pumps, choice)
    result = models.run()
    assert result.ending is Ending.FAILED
    assert words in (result.error or "")
    assert models.asked == []


def test_for_step_is_a_function() -> None:
    wrong: Any = "cheap"
    with pytest.raises(InvalidInput, match="for_step"):
        Brain("b", "offline:rules", for_step=wrong)


class WholeOnly:
    """A provider that knows no streams."""

    name = "whole"

    def generate(self, request: ModelRequest) -> ModelReply:
        return says(f"Step {request.step}.")


def test_a_provider_without_streams_answers_in_one_piece(pumps: Callable[..., Pump]) -> None:
    pump = pumps(Brain("plain", cast("Any", WholeOnly())))
    handle = pump.submit("s1", "Hello.")
    assert pump.finish(handle).text == "Step 1."


def test_an_object_that_is_no_provider_is_refused_by_what_it_lacks() -> None:
    class Named:
        name = "named"

    with pytest.raises(InvalidInput, match=r"got Named, which has no generate$"):
        Brain("plain", cast("Any", Named()))
    with pytest.raises(InvalidInput, match=r"got int, which has no name and no generate$"):
        Brain("plain", cast("Any", 5))
