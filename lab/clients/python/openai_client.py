# pyright: basic, reportMissingImports=false
"""PyPI `openai`: chat completions and responses."""

from __future__ import annotations

import threading
from typing import Any

import openai
from pydantic import BaseModel
from report import KEY, PICTURE, PLACE, SEEN, STORY, URL, approve_one, ended, raised, report, same

client = openai.OpenAI(api_key=KEY, base_url=f"{URL}/v1", max_retries=0)
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": True}


class Person(BaseModel):
    name: str
    age: int


def user(text: str) -> list[Any]:
    return [{"role": "user", "content": text}]


def chat(text: str, **more: Any) -> Any:
    return client.chat.completions.create(model="shop", messages=user(text), **more)


def answer() -> None:
    same(chat("hello").choices[0].message.content, "You said hello.")
    same(client.responses.create(model="shop", input="hello").output_text, "You said hello.")


def stream() -> None:
    pieces = [chunk.choices[0].delta.content or "" for chunk in chat("story", stream=True) if chunk.choices]
    same("".join(pieces), STORY)
    same(len([piece for piece in pieces if piece]) > 1, True)
    with client.responses.stream(model="shop", input="story") as events:
        deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
        same(events.get_final_response().output_text, STORY)
    same("".join(deltas), STORY)


def tools() -> None:
    named: Any = {"type": "function", "function": {"name": "weather", "parameters": PLACE}}
    asked = chat("weather", tools=[named]).choices[0].message
    call = asked.tool_calls[0]
    same((call.function.name, call.function.arguments), ("weather", '{"place":"Oslo"}'))
    rain = {"role": "tool", "tool_call_id": call.id, "content": "rain"}
    said = [*user("weather"), asked.to_dict(), rain]
    done = client.chat.completions.create(model="shop", messages=said, tools=[named])
    same(done.choices[0].message.content, "Seen rain.")
    first = client.responses.create(model="shop", input="weather", tools=[WEATHER])
    output: Any = [{"type": "function_call_output", "call_id": first.output[-1].call_id, "output": "rain"}]  # pyright: ignore
    rest = client.responses.create(model="shop", input=output, previous_response_id=first.id, tools=[WEATHER])
    same(rest.output_text, "Seen rain.")


def structured() -> None:
    parsed = client.chat.completions.parse(model="shop", messages=user("person"), response_format=Person)
    same(parsed.choices[0].message.parsed, Person(name="Bob", age=7))
    found = client.responses.parse(model="shop", input="person", text_format=Person)
    same(found.output_parsed, Person(name="Bob", age=7))


def image() -> None:
    text, url = {"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": PICTURE}}
    messages: Any = [{"role": "user", "content": [text, url]}]
    seen = client.chat.completions.create(model="shop", messages=messages)
    same(seen.choices[0].message.content, SEEN)
    parts = [{"type": "input_text", "text": "look"}, {"type": "input_image", "image_url": PICTURE}]
    given: Any = [{"role": "user", "content": parts}]
    same(client.responses.create(model="shop", input=given).output_text, SEEN)


def goes_on() -> None:
    first = client.responses.create(model="shop", input="hello")
    then = client.responses.create(model="shop", input="everything", previous_response_id=first.id)
    same(then.output_text, "user: hello | assistant: You said hello. | user: everything")
    said: list[Any] = [*user("hello"), {"role": "assistant", "content": "Hi."}, *user("everything")]
    told = client.chat.completions.create(model="shop", messages=said).choices[0].message.content
    same(told, "user: hello | assistant: Hi. | user: everything")


def failure() -> None:
    raised(openai.InternalServerError, lambda: chat("fail"), "the model refuses")
    raised(openai.APIError, lambda: list(chat("fail", stream=True)), "the model refuses")
    begun = client.responses.create(model="shop", input="fail", background=True)
    ended(begun.id.removeprefix("resp_"))
    same(client.responses.retrieve(begun.id).status, "failed")


def cancel() -> None:
    begun = client.responses.create(model="shop", input="linger", background=True)
    client.responses.cancel(begun.id)
    same(ended(begun.id.removeprefix("resp_")), "cancelled")
    same(client.responses.retrieve(begun.id).status, "cancelled")


def approval() -> None:
    person = threading.Thread(target=approve_one)
    person.start()
    same(client.responses.create(model="shop", input="refund").output_text, "Seen paid back.")
    person.join()


if __name__ == "__main__":
    report(
        "openai",
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
