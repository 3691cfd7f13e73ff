"""docs/wires/openai.md: its examples run, and its tables are those of the code."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, ScriptedProvider
from brainq.contracts.message import Reasoning
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from brainq.gateway.edge.access import VERBS
from brainq.gateway.wires.openai.chat_completions import UNSUPPORTED as CHAT
from brainq.gateway.wires.openai.chat_completions import ChatCompletionBody
from brainq.gateway.wires.openai.errors import is_openai_path
from brainq.gateway.wires.openai.responses import UNSUPPORTED as RESPONSES
from brainq.gateway.wires.openai.responses import ResponseBody
from tests.support.gateways import GatewayThread
from tests.support.pump import Pump

PAGE = (Path(__file__).parents[4] / "docs/wires/openai.md").read_text()


def answer(request: ModelRequest) -> ModelReply:
    said = [message.content for message in request.messages][-1]
    if "raining" in said:
        return calls(("weather", {"place": "Oslo"}))
    thought = Reasoning(wire="scripted", text="Let me count.")
    return says(said if "rains" in said else "There are 3 apples.").model_copy(update={"reasoning": (thought,)})


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps(Brain("shop", ScriptedProvider(rules=answer)))


@pytest.mark.usefixtures("pools")
def test_the_examples_run(gateway: GatewayThread, key: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    said: list[str] = []
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        code = block.replace("http://127.0.0.1:8321", gateway.url).replace('"bq_..."', repr(key))
        exec(compile(code, "openai.md", "exec"), names)
        said.append(capsys.readouterr().out)
    names["client"].close()
    apples = "There are 3 apples."
    assert said == [f"{apples}\n{apples}", "It rains in Oslo.\n", f"{apples}{apples}\n", "Let me count."]


def test_every_parameter_is_on_the_page() -> None:
    cells = " ".join(line.split(": ")[0] for line in PAGE.splitlines() if line.startswith("- `"))
    known = set(re.findall(r"[a-z_]+", " ".join(re.findall(r"`([^`]*)`", cells))))
    rest = {"messages", "input", "stream", "stream_options", "background", "text"}
    for body in (ChatCompletionBody, ResponseBody):
        assert set(body.model_fields) - rest - {"conversation", "previous_response_id"} <= known
    assert {*CHAT, *RESPONSES} <= known


def test_the_routes_are_those_of_the_table_of_verbs() -> None:
    told = dict(re.findall(r"^- `([A-Z]+ /[^`]*)`: `([a-z]+)`", PAGE, re.MULTILINE))
    assert told == {route: verb for route, verb in VERBS.items() if is_openai_path(route.split(" ")[1])}
