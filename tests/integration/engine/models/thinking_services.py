"""Services of models that think, call a tool and answer. They hold their clients to what was thought."""

from __future__ import annotations

import json
from typing import Any

from tests.integration.engine.models.wire_server import Exchange, WireServer
from tests.unit.engine.models.test_reasoning import HIDDEN, THOUGHT, events_of, text, use

CONTENT = [THOUGHT, text("Let me look. "), HIDDEN, use(0)]
STALE = "messages.1.content.0: thinking: The block is bound to a different conversation"
BACK = {"reasoning_content": "I look first. 🦊"}


class Thinker:
    """Answers a question by a call, and its result by an answer. Refuses a result that comes without what was thought.

    refuses   how many such requests it refuses all the same
    """

    def __init__(self, wire: WireServer) -> None:
        self.wire = wire
        self.refuses = 0
        self.wrong: list[str] = []

    def refuse(self, exchange: Exchange, why: str) -> None:
        exchange.send_json(400, {"error": {"type": "invalid_request_error", "message": why}})

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.wire.bodies[-1]["messages"]


class Claude(Thinker):
    def __call__(self, exchange: Exchange) -> None:
        newest = self.messages[-1]
        if newest["content"][0]["type"] != "tool_result":
            thought = [block for one in self.messages for block in one["content"] if "thinking" in block["type"]]
            if thought:
                self.wrong.append(f"an earlier turn's {thought}")
            return self.stream(exchange, CONTENT)
        if self.refuses:
            self.refuses -= 1
            return self.refuse(exchange, STALE)
        back = [
            {name: value for name, value in block.items() if name != "cache_control"}
            for block in self.messages[-2]["content"]
        ]
        wanted = [{**block, "id": back[-1].get("id")} if block["type"] == "tool_use" else block for block in CONTENT]
        if back != wanted:
            self.wrong.append(json.dumps(back))
        return self.stream(exchange, [text("It rains.")])

    def stream(self, exchange: Exchange, content: list[dict[str, Any]]) -> None:
        exchange.begin()
        for event in events_of(content):
            exchange.event(event)
        exchange.finish()


class DeepSeek(Thinker):
    def __call__(self, exchange: Exchange) -> None:
        called = [one for one in self.messages if one.get("tool_calls")]
        if any({name: one.get(name) for name in BACK} != BACK for one in called):
            return self.refuse(exchange, "The `reasoning_content` in the thinking mode must be passed back to the API.")
        replies = [one for one in self.messages if one["role"] == "assistant"]
        if replies and replies[-1].get("tool_calls"):
            return self.stream(exchange, [{"reasoning_content": "Rain."}, {"content": "It rains."}], "stop")
        arguments = {"name": "weather", "arguments": '{"n": 0}'}
        made = {"index": 0, "id": "x", "type": "function", "function": arguments}
        words = [BACK, {"content": "Let me look. "}, {"tool_calls": [made]}]
        return self.stream(exchange, words, "tool_calls")

    def stream(self, exchange: Exchange, deltas: list[dict[str, Any]], finish: str) -> None:
        exchange.begin()
        for delta in deltas:
            exchange.event({"choices": [{"delta": delta}]})
        exchange.event({"choices": [{"delta": {}, "finish_reason": finish}]})
        exchange.event("[DONE]")
        exchange.finish()


def beginning_read_again(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of Anthropic's first request. Fails unless the second begins with them, and both are kept there."""
    before, after = _blocks_of(first), _blocks_of(second)
    assert "cache_control" in before[-1]
    assert "cache_control" in after[len(before) - 1], "it is read where the first request left it"
    assert "cache_control" in after[-1], "and left for the next"
    for blocks in (before, after):
        assert 1 <= sum("cache_control" in block for block in blocks) <= 4
    plain = [
        [{name: value for name, value in block.items() if name != "cache_control"} for block in blocks]
        for blocks in (before, after)
    ]
    assert json.dumps(plain[1][: len(before)]).encode() == json.dumps(plain[0]).encode()
    return plain[0]


def _blocks_of(body: dict[str, Any]) -> list[dict[str, Any]]:
    """A request in the order in which its service reads it."""
    said = [block for message in body["messages"] for block in message["content"]]
    return [*body.get("tools", ()), *body.get("system", ()), *said]
