"""OpenAI's Responses API as a service that holds its client to its rules, and reasons before it answers."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from tests.integration.engine.models.wire_server import Exchange
from tests.unit.engine.models.test_responses_wire import response, streamed

Item = dict[str, Any]


class ResponsesService:
    """Answers with what `outputs` holds, a reasoning item before each; `refused` are the rules that were broken.

    A client must store nothing, answer each call, and send each reasoning item back as it came, before the item it
    came before.
    """

    def __init__(self, *outputs: list[Item]) -> None:
        self.outputs = list(outputs)
        self.refused: list[str] = []
        self.given: dict[str, tuple[Item, Item]] = {}  # what was thought, and what came of it
        self.sent_back: list[str] = []
        self._numbers = itertools.count(1)

    def __call__(self, exchange: Exchange) -> None:
        body: dict[str, Any] = exchange.server.owner.bodies[-1]
        broken = next(self._broken(body), None)
        if broken is not None:
            self.refused.append(broken)
            exchange.send_json(400, {"error": {"message": broken, "type": "invalid_request_error"}})
            return
        answer = response(
            *self._thinking(self.outputs.pop(0)),
            model=body["model"],
            usage={"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 3}},
        )
        if not body.get("stream"):
            exchange.send_json(200, answer)
            return
        exchange.begin()
        for event in streamed(answer):
            exchange.event(event)
        exchange.finish()

    def _thinking(self, output: list[Item]) -> Iterator[Item]:
        for item in output:
            number = next(self._numbers)
            thought = {
                "id": f"rs_{number}",
                "type": "reasoning",
                "summary": [{"type": "summary_text", "text": f"Thought {number}."}],
                "encrypted_content": f"sealed-{number}",
                "status": None,
            }
            self.given[f"rs_{number}"] = (thought, item)
            yield thought
            yield item

    def _broken(self, body: dict[str, Any]) -> Iterator[str]:
        if body.get("store") is not False or body.get("include") != ["reasoning.encrypted_content"]:
            yield "something would be stored, or the reasoning not be sent"
        open_calls: list[str] = []
        items: list[Item] = body["input"]
        self.sent_back = [item["id"] for item in items if item["type"] == "reasoning"]
        for item, following in zip(items, [*items[1:], None], strict=True):
            match item["type"]:
                case "function_call":
                    json.loads(item["arguments"])
                    open_calls.append(item["call_id"])
                case "function_call_output":
                    if item["call_id"] not in open_calls:
                        yield f"no tool call found for {item['call_id']}"
                    else:
                        open_calls.remove(item["call_id"])
                case "reasoning":
                    yield from self._of_thought(item, following)
                case "message":
                    if open_calls and item["role"] == "user":
                        yield f"no output for {open_calls}"
                case other:
                    yield f"unknown item {other}"
        if open_calls:
            yield f"no tool output found for {open_calls}"

    def _of_thought(self, item: Item, following: Item | None) -> Iterator[str]:
        thought, next_then = self.given[item["id"]]
        if item != {key: value for key, value in thought.items() if value is not None}:
            yield f"{item['id']} is not what it was"
        if following is None or following["type"] != next_then["type"]:
            yield f"{item['id']} was provided without its required following item"
        elif following.get("phase") != next_then.get("phase"):
            yield f"what followed {item['id']} has lost its phase"
        elif following["type"] == "function_call" and following["arguments"] != next_then["arguments"]:
            yield f"{item['id']} came before another call"
