# pyright: basic, reportMissingImports=false
"""PyPI `langchain-openai`: ChatOpenAI over both wires, and an agent of `langchain` on it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, SecretStr
from report import KEY, PICTURE, SEEN, STORY, URL, approve_one, cancel_running, raised, report, running, same


class Person(BaseModel):
    """A person."""

    name: str
    age: int


@tool
def weather(place: str) -> str:
    """Tell the weather."""
    return f"rain in {place}"


def models() -> list[ChatOpenAI]:
    given: dict[str, Any] = {"model": "shop", "api_key": SecretStr(KEY), "base_url": f"{URL}/v1", "max_retries": 0}
    return [ChatOpenAI(**given, use_responses_api=wire) for wire in (False, True)]


def text_of(message: Any) -> str:
    return message.text if isinstance(message.text, str) else message.text()


def answer() -> None:
    for model in models():
        same(text_of(model.invoke("hello")), "You said hello.")


def stream() -> None:
    for model in models():
        pieces = [text_of(chunk) for chunk in model.stream("story")]
        same(("".join(pieces), len(pieces) > 1), (STORY, True))


def tools() -> None:
    for model in models():
        agent = create_agent(model, [weather])
        said: Any = {"messages": [HumanMessage("weather")]}
        same(text_of(agent.invoke(said)["messages"][-1]), "Seen rain in Oslo.")


def structured() -> None:
    for model in models():
        for method in ("json_schema", "function_calling"):
            found = model.with_structured_output(Person, method=method).invoke("person")
            same(found, Person(name="Bob", age=7))


def image() -> None:
    parts: Any = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}]
    for model in models():
        same(text_of(model.invoke([HumanMessage(content=parts)])), SEEN)


def goes_on() -> None:
    said = [HumanMessage("hello"), AIMessage("Hi."), HumanMessage("everything")]
    for model in models():
        same(text_of(model.invoke(said)), "user: hello | assistant: Hi. | user: everything")
    model = models()[1]
    first = model.invoke("hello")
    then = model.invoke("everything", previous_response_id=first.response_metadata["id"])
    same(text_of(then), "user: hello | assistant: You said hello. | user: everything")


def failure() -> None:
    for model in models():
        raised(Exception, lambda model=model: model.invoke("fail"), "the model refuses")
        raised(Exception, lambda model=model: list(model.stream("fail")), "the model refuses")


async def cancel() -> None:
    """Closing a stream stops reading; the turn is cancelled by the gateway's own route."""
    reading = asyncio.create_task(models()[0].ainvoke("linger"))
    await asyncio.to_thread(running)
    reading.cancel()
    await asyncio.to_thread(cancel_running)


def approval() -> None:
    for model in models():
        person = threading.Thread(target=approve_one)
        person.start()
        same(text_of(model.invoke("refund")), "Seen paid back.")
        person.join()


if __name__ == "__main__":
    report(
        "langchain-openai",
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
