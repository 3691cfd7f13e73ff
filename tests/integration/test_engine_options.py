"""How a turn's model is asked: brain, turn, and what a session's redaction keeps."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect, ModelOptions, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.status import Ending
from brainq.errors import InvalidInput
from brainq.providers.scripted import calls, says
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
    said = {**OPTIONS.said(), "temperature": 0.0}
    assert [options.said() for options in asked.options] == [said | {"tool_choice": "required"}, said, said]
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
def test_a_tool_that_is_not_there_is_refused_where_the_turn_enters(
    pumps: Callable[..., Pump], choice: str
) -> None:
    asked = Asked(pumps)
    with pytest.raises(InvalidInput, match=r"options\.tool_choice"):
        asked.pump.submit("s1", "Look.", options={"tool_choice": choice})
    assert asked.pump.client.turns() == ()


def test_a_brain_that_forces_what_it_has_not_fails_its_turns_with_the_reason(
    pumps: Callable[..., Pump],
) -> None:
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
