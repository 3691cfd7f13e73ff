# pyright: basic, reportMissingImports=false
"""PyPI `instructor`: every answer is an object, by a tool (its default), a JSON schema, or responses."""

from __future__ import annotations

from typing import Any

import instructor
import openai
from instructor.core import InstructorRetryException
from pydantic import BaseModel
from report import KEY, URL, Absent, Untried, raised, report, same

BOB: Any = {"name": "Bob", "age": 7}


class Person(BaseModel):
    name: str
    age: int


def clients() -> list[Any]:
    modes = (instructor.Mode.TOOLS, instructor.Mode.JSON_SCHEMA, instructor.Mode.RESPONSES_TOOLS)
    return [
        instructor.from_openai(openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0), mode=mode)
        for mode in modes
    ]


def made(client: Any, text: str, **more: Any) -> Any:
    messages = [{"role": "user", "content": text}]
    return client.create(model="shop", messages=messages, response_model=Person, max_retries=0, **more)


def answer() -> None:
    raise Absent("instructor always asks for an object")


def stream() -> None:
    messages: Any = [{"role": "user", "content": "person"}]
    for client in clients()[:2]:
        parts = list(client.create_partial(model="shop", messages=messages, response_model=Person))
        same(parts[-1].model_dump(), BOB)


def structured() -> None:
    for client in clients():
        same(made(client, "person").model_dump(), BOB)


def tools() -> None:
    raise Absent("its tool is the object itself; no result is sent back")


def image() -> None:
    raise Untried("the client under it is OpenAI, Python, which was run")


def goes_on() -> None:
    said: Any = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Hi."},
        {"role": "user", "content": "person"},
    ]
    for client in clients():
        found = client.create(model="shop", messages=said, response_model=Person, max_retries=0)
        same(found.model_dump(), BOB)


def failure() -> None:
    for client in clients():
        kinds: Any = (openai.InternalServerError, InstructorRetryException)
        raised(kinds, lambda client=client: made(client, "fail"), "the model refuses")


def cancel() -> None:
    raise Untried("the client under it is OpenAI, Python, which was run")


def approval() -> None:
    raise Untried("the client under it is OpenAI, Python, which was run")


if __name__ == "__main__":
    report(
        "instructor",
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
