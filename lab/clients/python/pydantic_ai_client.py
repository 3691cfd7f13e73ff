# pyright: basic, reportMissingImports=false
"""PyPI `pydantic-ai-slim`: agents whose model is a brain, over both wires."""

from __future__ import annotations

import asyncio
from typing import Any

import openai
from pydantic import BaseModel
from pydantic_ai import Agent, BinaryContent, NativeOutput, ToolOutput
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from report import KEY, PNG, SEEN, STORY, URL, approve_one, cancel_running, report, running, same


class Person(BaseModel):
    name: str
    age: int


def weather(place: str) -> str:
    """Tell the weather."""
    return f"rain in {place}"


def agents(**more: Any) -> list[Agent[None, Any]]:
    """Return an agent for each wire. A client belongs to the event loop on which it was first used."""
    client = openai.AsyncOpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
    provider = OpenAIProvider(openai_client=client)
    kinds = (OpenAIChatModel, OpenAIResponsesModel)
    return [Agent(kind("shop", provider=provider), **more) for kind in kinds]


async def answer() -> None:
    for agent in agents():
        same((await agent.run("hello")).output, "You said hello.")


async def stream() -> None:
    for agent in agents():
        async with agent.run_stream("story") as run:
            pieces = [piece async for piece in run.stream_text(delta=True, debounce_by=None)]
        same(("".join(pieces), len(pieces) > 1), (STORY, True))


async def tools() -> None:
    for agent in agents(tools=[weather]):
        same((await agent.run("weather")).output, "Seen rain in Oslo.")


async def structured() -> None:
    for output in (NativeOutput(Person), ToolOutput(Person)):
        for agent in agents(output_type=output):
            same((await agent.run("person")).output, Person(name="Bob", age=7))


async def image() -> None:
    for agent in agents():
        same((await agent.run(["look", BinaryContent(PNG, media_type="image/png")])).output, SEEN)


async def goes_on() -> None:
    for agent in agents():
        first = await agent.run("hello")
        then = await agent.run("everything", message_history=first.all_messages())
        same(then.output, "user: hello | assistant: You said hello. | user: everything")


async def failure() -> None:
    for agent in agents():
        try:
            found = await agent.run("fail")
        except (ModelHTTPError, ModelAPIError) as error:
            same("the model refuses" in str(error), True)
        else:
            raise AssertionError(f"told as success: {found.output!r}")


async def cancel() -> None:
    """Cancelling a run stops reading; the turn is cancelled by the gateway's own route."""
    reading = asyncio.create_task(agents()[0].run("linger"))
    await asyncio.to_thread(running)
    reading.cancel()
    await asyncio.to_thread(cancel_running)


async def approval() -> None:
    for agent in agents():
        person = asyncio.create_task(asyncio.to_thread(approve_one))
        same((await agent.run("refund")).output, "Seen paid back.")
        await person


if __name__ == "__main__":
    report(
        "pydantic-ai-slim",
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
