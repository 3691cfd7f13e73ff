"""Samples from the input tokens that services reported for recorded sessions.

The input of a step is that of the step before and what was added since. The difference of the two counts is
therefore what the addition really cost, framing included:

    prose          the model's answer, then the user's next message
    tool results   a reply with calls, then their results
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from brainq.contracts.message import Message, ToolCall
from brainq.runtime.text.estimate import estimate_messages
from lab.estimate.ratios import Sample

Samples = dict[tuple[str, str], list[Sample]]


def usage_samples(recorded: Path) -> tuple[Samples, list[str]]:
    """Return (model, kind) -> samples, and the models that are left out.

    A model is left out if its input ever became smaller. What it reports is then not the count of the whole
    conversation, for example because cached input is not counted, an older part was dropped, or thinking was removed.
    """
    grown: dict[tuple[str, str], list[tuple[int, int]]] = {}
    with gzip.open(recorded, "rt", encoding="utf-8") as lines:
        for line in lines:
            session = json.loads(line)
            for kind, added, more in _differences(session["turns"]):
                grown.setdefault((session["model"], kind), []).append((estimate_messages(added), more))
    shrunk = {model for (model, _), pairs in grown.items() if any(more <= 0 for _, more in pairs)}
    samples = {
        key: [Sample(estimated, more) for estimated, more in pairs]
        for key, pairs in sorted(grown.items())
        if key[0] not in shrunk
    }
    return samples, sorted(shrunk)


def _differences(turns: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[Message], int]]:
    """Yield (kind, added text, growth of the input in tokens) for consecutive steps with usage."""
    steps = [
        (step, turn["user"] if first else None)
        for turn in turns
        for first, step in ((number == 0, step) for number, step in enumerate(turn["steps"]))
    ]
    for (before, _), (after, message) in pairwise(steps):
        tokens = [(step.get("usage") or {}).get("in") or 0 for step in (before, after)]
        if not all(tokens):
            continue
        if message is None:
            yield "tool results", _reply(before), tokens[1] - tokens[0]
        elif not before["calls"]:
            yield "prose", [*_reply(before), Message(role="user", content=message)], tokens[1] - tokens[0]


def _reply(step: dict[str, Any]) -> list[Message]:
    calls = tuple(ToolCall(id=call["id"], name=call["name"], arguments=call["arguments"]) for call in step["calls"])
    results = (Message(role="tool", content=result["content"]) for result in step["results"])
    return [Message(role="assistant", content=step["text"] or "", calls=calls), *results]
