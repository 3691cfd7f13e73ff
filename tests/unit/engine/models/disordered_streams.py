"""Streams of known calls in each wire's own shapes, with the disorders that servers and proxies bring in."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

Event = dict[str, Any]
NUMBERINGS: dict[str, Callable[[int, int], int | None]] = {
    "right": lambda place, _: place,
    "zero": lambda place, _: 0,
    "missing": lambda place, _: None,
    "from one": lambda place, _: place + 1,
    "backwards": lambda place, count: count - 1 - place,
    "jumping": lambda place, _: place * 7 % 5 + 3,
}


@dataclass(frozen=True)
class MadeCall:
    """A call that the model made."""

    id: str
    name: str
    arguments: dict[str, Any]


@dataclass
class Disordered:
    """A stream, and what may come of it.

    must_equal    its calls can be told apart by ids: it may not be refused
    must_refuse   it holds a second reply
    """

    calls: list[MadeCall]
    events: list[Event] = field(default_factory=list[Event])
    must_equal: bool = True
    must_refuse: bool = False
    has_end_marker: bool = False

    @property
    def body(self) -> bytes:
        data = [json.dumps(event) for event in self.events] + ["[DONE]"] * self.has_end_marker
        return b"".join(b"data: %s\n\n" % line.encode() for line in data)


def some_calls(random: Random) -> list[MadeCall]:
    """Up to four calls, among them equal ones, and ones without arguments."""
    return [
        MadeCall(f"id{number}", random.choice(["pay", "ping"]), random.choice([{}, {"n": 1}, {"n": 2}, {"to": "ann"}]))
        for number in range(random.randint(1, 4))
    ]


def pieces(random: Random, call: MadeCall) -> list[str]:
    """The call's arguments in up to three pieces; an empty object may be an empty text."""
    text = json.dumps(call.arguments) if call.arguments or random.random() < 0.5 else ""
    text = random.choice(["", "", "", "{}"]) + text if text else text
    cuts = sorted(random.randint(0, len(text)) for _ in range(random.randint(0, 2)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


def interleaved(random: Random, calls: list[list[Event]]) -> list[Event]:
    """The events of several calls side by side, each in its own order; the first of each in the calls' order."""
    made = [events.pop(0) for events in calls]
    while left := [events for events in calls if events]:
        made.append(random.choice(left).pop(0))
    return made


def index_key(name: str, index: int | None) -> Event:
    return {} if index is None else {name: index}


def chat_stream(random: Random, calls: list[MadeCall] | None = None) -> Disordered:
    calls = calls or some_calls(random)
    made = Disordered(calls)
    numbering, ids = random.choice(list(NUMBERINGS)), random.choice(["first", "each", "none", "late", "own"])
    made.must_equal = ids == "each" or (ids == "first" and numbering not in ("zero", "missing"))
    role_each, own_chunks = random.random() < 0.3, random.random() < 0.3

    def chunk(delta: Event, finish: str | None = None, chunk_id: str = "c1") -> Event:
        chunk_id = f"c{random.random()}" if own_chunks else chunk_id
        said = delta | ({"role": "assistant"} if role_each else {})
        return {"id": chunk_id, "choices": [{"index": 0, "delta": said, "finish_reason": finish}]}

    def parts_of(place: int, call: MadeCall, name: str) -> list[Event]:
        found: list[Event] = []
        for number, piece in enumerate(pieces(random, call)):
            has_id = ids == "each" or (ids == "first" and number == 0) or (ids == "late" and number == 1)
            wire_id = f"{call.id}-{number}" if ids == "own" else call.id
            function = {"arguments": piece} | ({"name": name} if number == 0 else {})
            part = index_key("index", NUMBERINGS[numbering](place, len(calls))) | {"function": function}
            found.append(part | ({"id": wire_id} if has_id or ids == "own" else {}))
        return found

    parts = [parts_of(place, call, call.name) for place, call in enumerate(calls)]
    if numbering in ("zero", "missing") and not all(
        any(part["function"]["arguments"] for part in one) for one in parts
    ):
        made.must_equal = False  # a call that says nothing may be the beginning of the next
    side_by_side = made.must_equal and random.random() < 0.4
    flat = interleaved(random, parts) if side_by_side else [part for one in parts for part in one]
    if ids == "each" and random.random() < 0.2:
        whole = {"id": calls[0].id, "function": {"name": calls[0].name, "arguments": json.dumps(calls[0].arguments)}}
        flat.append(index_key("index", NUMBERINGS[numbering](0, len(calls))) | whole)  # said once more
    made.events = [chunk({"role": "assistant", "content": ""}), *(chunk({"tool_calls": [part]}) for part in flat)]
    if random.random() < 0.15 and not own_chunks and len(made.events) > 2:
        made.must_refuse, again = True, [event | {"id": "c2"} for event in made.events]
        made.events = [*made.events[: random.randint(3, len(made.events))], *again]
    if random.random() < 0.8:
        made.events.append(chunk({}, "tool_calls", "c2" if made.must_refuse else "c1"))
        made.has_end_marker = random.random() < 0.7
    else:
        made.has_end_marker, made.must_equal = True, made.must_equal and all(call.arguments for call in calls)
    made.events += [{"id": "u", "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}]
    return made


def responses_stream(random: Random, calls: list[MadeCall] | None = None) -> Disordered:
    calls = calls or some_calls(random)
    made = Disordered(calls)
    numbering, ids = random.choice(list(NUMBERINGS)), random.choice(["both", "call", "none", "foreign"])
    kinds, final = random.choice(["all", "done", "pieces"]), random.choice(["full", "empty", "missing"])
    made.must_equal = ids == "both" or (ids == "call" and kinds == "done")
    made.must_equal &= kinds != "pieces" or all(call.arguments for call in calls) or final == "full"

    def item(call: MadeCall) -> Event:
        found: Event = {"type": "function_call", "name": call.name, "arguments": json.dumps(call.arguments)}
        found |= {} if ids == "none" else {"call_id": call.id}
        return found | ({"id": f"fc_{call.id}"} if ids in ("both", "foreign") else {})

    def events_of(place: int, call: MadeCall) -> list[Event]:
        number = index_key("output_index", NUMBERINGS[numbering](place, len(calls)))
        begun = {"type": "response.output_item.added", "item": item(call) | {"arguments": ""}} | number
        item_id = {"both": f"fc_{call.id}", "foreign": f"x{random.random()}"}.get(ids, "")
        said: list[Event] = [
            {"type": "response.function_call_arguments.delta", "delta": piece, "item_id": item_id} | number
            for piece in pieces(random, call)
        ]
        done = {"type": "response.output_item.done", "item": item(call)} | number
        return [done] if kinds == "done" else [begun, *said, *([done] if kinds == "all" else [])]

    parts = [events_of(place, call) for place, call in enumerate(calls)]
    side_by_side = ids == "both" and final == "full" and random.random() < 0.4
    flat = interleaved(random, parts) if side_by_side else [event for one in parts for event in one]
    if ids != "none" and kinds == "done" and random.random() < 0.3:
        flat.insert(random.randint(1, len(flat)), flat[0])
    made.events = [{"type": "response.created", "response": {"id": "r1"}}, *flat]
    if random.random() < 0.15:
        made.must_refuse = True
        again = [{"type": "response.created", "response": {"id": "r2"}}, *flat]
        made.events = [*made.events[: random.randint(2, len(made.events))], *again]
    output = {"full": {"output": [item(call) for call in calls]}, "empty": {"output": []}, "missing": {}}[final]
    made.events.append({"type": "response.completed", "response": {"status": "completed"} | output})
    return made


def anthropic_stream(random: Random, calls: list[MadeCall] | None = None) -> Disordered:
    calls = calls or some_calls(random)
    made = Disordered(calls)
    numbering, has_ids, has_stops = random.choice(list(NUMBERINGS)), random.random() < 0.8, random.random() < 0.8
    made.must_equal = has_ids and (has_stops or numbering in ("right", "from one", "backwards"))

    def events_of(place: int, call: MadeCall) -> list[Event]:
        number = index_key("index", NUMBERINGS[numbering](place, len(calls)))
        block: Event = {"type": "tool_use", "name": call.name, "input": {}} | ({"id": call.id} if has_ids else {})
        said: list[Event] = [
            {"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": piece}} | number
            for piece in pieces(random, call)
        ]
        begun = {"type": "content_block_start", "content_block": block} | number
        starts = [begun] * (2 if has_ids and random.random() < 0.1 else 1)
        return [*starts, *said, *([{"type": "content_block_stop"} | number] if has_stops else [])]

    flat = [event for place, call in enumerate(calls) for event in events_of(place, call)]
    made.events = [{"type": "message_start", "message": {"id": "m1", "usage": {"input_tokens": 1}}}, *flat]
    if random.random() < 0.15:
        made.must_refuse = True
        again = [{"type": "message_start", "message": {"id": "m2", "usage": {"input_tokens": 1}}}, *flat]
        made.events = [*made.events[: random.randint(2, len(made.events))], *again]
    if random.random() < 0.8:
        made.events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    else:
        made.must_equal &= has_stops or all(call.arguments for call in calls)
    made.events.append({"type": "message_stop"})
    return made


STREAMS = {"openai": chat_stream, "openai-responses": responses_stream, "anthropic": anthropic_stream}
