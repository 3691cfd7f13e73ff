"""OpenAI's client against real pools, one of which dies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from openai import OpenAI

from brainq.app.access import Tokens
from tests.integration.gateway.openai.conftest import PLACE
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayThread
from tests.support.watch import tool_texts
from tests.support.world import World


@pytest.mark.full
def test_the_clients_calls_outlive_the_coordinators(tmp_path: Path) -> None:
    weather: Any = {"type": "function", "function": {"name": "weather", "parameters": PLACE}}
    asked = script([("write", {"name": "a"}), ("weather", {"place": "Oslo"})], final="$seen")
    messages: list[Any] = [{"role": "user", "content": asked}]
    world = World(tmp_path)
    try:
        world.start()
        brain = world.wiring.brains.default.name
        with GatewayThread(world.settings, world.wiring.brains) as gateway:
            token = Tokens(world.wiring.store).create("acme", ["acme:"], ["read", "submit", "steer"]).text
            with OpenAI(api_key=token, base_url=f"{gateway.url}/v1", max_retries=0) as client:
                first = client.chat.completions.create(model=brain, messages=messages, tools=[weather])
                made: Any = first.choices[0].message
                assert first.choices[0].finish_reason == "tool_calls"
                world.kill_all("coordinator")
                world.launch_dead()
                (call,) = made.tool_calls
                messages += [made.to_dict(), {"role": "tool", "tool_call_id": call.id, "content": "rain"}]
                done = client.chat.completions.create(model=brain, messages=messages, tools=[weather])
        assert tool_texts(done.choices[0].message.content or "")[1:] == ["rain"]
    finally:
        world.stop()
