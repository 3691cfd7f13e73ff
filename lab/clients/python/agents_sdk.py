# pyright: basic, reportMissingImports=false
"""PyPI `openai-agents`: agents whose model is a brain, over responses and over chat completions."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from pydantic import BaseModel
from report import KEY, PICTURE, SEEN, STORY, URL, approve_one, cancel_running, report, running, same

set_tracing_disabled(True)


class Person(BaseModel):
    name: str
    age: int


@function_tool
def weather(place: str) -> str:
    """Tell the weather."""
    return f"rain in {place}"


def agents(**more: Any) -> list[Agent]:
    """Return an agent for each wire. A client belongs to the event loop on which it was first used."""
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    kinds = (OpenAIResponsesModel, OpenAIChatCompletionsModel)
    return [Agent(name="shop", model=kind("shop", client), **more) for kind in kinds]


async def answer() -> None:
    for agent in agents():
        same((await Runner.run(agent, "hello")).final_output, "You said hello.")


async def stream() -> None:
    for agent in agents():
        run = Runner.run_streamed(agent, "story")
        pieces = [
            event.data.delta
            async for event in run.stream_events()
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta"
        ]
        same(("".join(pieces), len(pieces) > 1, run.final_output), (STORY, True, STORY))


async def tools() -> None:
    for agent in agents(tools=[weather]):
        same((await Runner.run(agent, "weather")).final_output, "Seen rain in Oslo.")


async def structured() -> None:
    for agent in agents(output_type=Person):
        same((await Runner.run(agent, "person")).final_output, Person(name="Bob", age=7))


async def image() -> None:
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PICTURE, "detail": "auto"}]
    for agent in agents():
        said: Any = [{"role": "user", "content": parts}]
        same((await Runner.run(agent, said)).final_output, SEEN)


async def goes_on() -> None:
    wanted = "user: hello | assistant: You said hello. | user: everything"
    for agent in agents():
        first = await Runner.run(agent, "hello")
        said: Any = [*first.to_input_list(), {"role": "user", "content": "everything"}]
        same((await Runner.run(agent, said)).final_output, wanted)
    agent = agents()[0]
    first = await Runner.run(agent, "hello")
    then = await Runner.run(agent, "everything", previous_response_id=first.last_response_id)
    same(then.final_output, wanted)


async def failure() -> None:
    for agent in agents():
        try:
            found = await Runner.run(agent, "fail")
        except Exception as error:
            same("the model refuses" in str(error), True)
        else:
            raise AssertionError(f"told as success: {found.final_output!r}")


async def cancel() -> None:
    """`cancel()` of a run stops reading; the turn is cancelled by the gateway's own route."""
    run = Runner.run_streamed(agents()[0], "linger")
    reading = asyncio.create_task(_read(run))
    await asyncio.to_thread(running)
    run.cancel()
    await asyncio.to_thread(cancel_running)
    await reading


async def _read(run: Any) -> None:
    async for _ in run.stream_events():
        pass


async def approval() -> None:
    for agent in agents():
        person = asyncio.create_task(asyncio.to_thread(approve_one))
        same((await Runner.run(agent, "refund")).final_output, "Seen paid back.")
        await person


if __name__ == "__main__":
    report(
        "openai-agents",
        {
            "answer": answer,
            "stream": stream,
            "tools": tools,
            "structured": structured,
            "image": image,
            "continue": goes_on,
            "failure": failure,
            "cancel": cancel,
            "approval": approval,
        },
    )
