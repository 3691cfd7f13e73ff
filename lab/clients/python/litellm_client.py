# pyright: basic, reportMissingImports=false
"""PyPI `litellm`: a brain as a model of an OpenAI-compatible service, over both wires."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import litellm
from pydantic import BaseModel
from report import KEY, PICTURE, PLACE, SEEN, STORY, URL, approve_one, cancel_running, raised, report, running, same

TO: dict[str, Any] = {
    "model": "openai/shop",
    "api_base": f"{URL}/v1",
    "api_key": KEY,
    "num_retries": 0,
    "max_retries": 0,
}


class Person(BaseModel):
    name: str
    age: int


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def chat(text: str, **more: Any) -> Any:
    return litellm.completion(messages=user(text), **TO, **more)


def text_of(response: Any) -> str:
    return "".join(part.text for item in response.output if item.type == "message" for part in item.content)


def answer() -> None:
    same(chat("hello").choices[0].message.content, "You said hello.")
    same(text_of(litellm.responses(input="hello", **TO)), "You said hello.")


def stream() -> None:
    pieces = [chunk.choices[0].delta.content or "" for chunk in chat("story", stream=True)]
    same(("".join(pieces), len(pieces) > 1), (STORY, True))
    events: Any = litellm.responses(input="story", stream=True, **TO)
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    same("".join(deltas), STORY)


def tools() -> None:
    named = {"type": "function", "function": {"name": "weather", "parameters": PLACE}}
    first = chat("weather", tools=[named]).choices[0].message
    rain = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "rain"}
    said: Any = [*user("weather"), first.model_dump(), rain]
    done: Any = litellm.completion(messages=said, tools=[named], **TO)
    same(done.choices[0].message.content, "Seen rain.")


def structured() -> None:
    schema = {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema()}}
    for wanted in (Person, schema):
        found = chat("person", response_format=wanted).choices[0].message.content
        same(Person.model_validate_json(found), Person(name="Bob", age=7))


def image() -> None:
    text, url = {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}
    messages = [{"role": "user", "content": [text, url]}]
    done: Any = litellm.completion(messages=messages, **TO)
    same(done.choices[0].message.content, SEEN)


def goes_on() -> None:
    said = [*user("hello"), {"role": "assistant", "content": "Hi."}, *user("everything")]
    done: Any = litellm.completion(messages=said, **TO)
    same(done.choices[0].message.content, "user: hello | assistant: Hi. | user: everything")
    first: Any = litellm.responses(input="hello", **TO)
    then = litellm.responses(input="everything", previous_response_id=first.id, **TO)
    same(text_of(then), "user: hello | assistant: You said hello. | user: everything")


def failure() -> None:
    raised(litellm.InternalServerError, lambda: chat("fail"), "the model refuses")
    raised(Exception, lambda: list(chat("fail", stream=True)), "the model refuses")


async def cancel() -> None:
    """Closing a request stops reading; the turn is cancelled by the gateway's own route."""
    reading = asyncio.create_task(litellm.acompletion(messages=user("linger"), **TO))
    await asyncio.to_thread(running)
    reading.cancel()
    await asyncio.to_thread(cancel_running)


def approval() -> None:
    person = threading.Thread(target=approve_one)
    person.start()
    same(chat("refund").choices[0].message.content, "Seen paid back.")
    person.join()


if __name__ == "__main__":
    report(
        "litellm",
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
