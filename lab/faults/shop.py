"""The brain that the workers run. It imports what is public alone: other builds load it, too, copied beside them.

A turn is two reads and a write, a second write, and the answer. Whoever does one of them says so to the effect server
first, and is held there if that is asked for. A user message that holds `deadly` makes one read kill its process.
"""

from __future__ import annotations

import json
import os
import signal
import time
import urllib.request
from pathlib import Path
from typing import Any

import brainq
from brainq import Brain, Effect, ModelReply, ModelRequest, RunContext
from brainq.testing import ScriptedProvider, calls, says

EFFECTS = "FAULTS_EFFECTS"
BUILD = str(Path(brainq.__file__).parents[1])
WRITES = ("order", "ship")
STEP_S, READ_S, WRITE_S = 0.1, 0.05, 0.05
ANSWER_S = 310.0  # longer than anybody is held


def tell(kind: str, place: str, turn: str, **facts: Any) -> None:
    """`visit` or `write` this place of the turn; returns when the server has it in its log, and lets go."""
    body = {"place": place, "turn": turn, "pid": os.getpid(), "build": BUILD, **facts}
    request = urllib.request.Request(f"{os.environ[EFFECTS]}/{kind}", json.dumps(body).encode())
    with urllib.request.urlopen(request, timeout=ANSWER_S):
        pass


def answer(request: ModelRequest) -> ModelReply:
    tell("visit", "model", request.turn_id, step=request.step)
    time.sleep(STEP_S)
    if request.step == 1:
        deadly = any("deadly" in message.content for message in request.messages)
        reads = ("look", {"shelf": 1}), ("look", {"shelf": 2, "deadly": deadly})
        return calls(*reads, ("order", {"item": "apples"}))
    return calls(("ship", {"item": "pears"})) if request.step == 2 else says("done")


def make_shop(**options: Any) -> Brain:
    """Return the brain. `options` are passed to `Brain`."""
    shop = Brain("shop", ScriptedProvider(rules=answer), "You keep a shop.", **options)

    @shop.tool(effect=Effect.READ_ONLY)
    def look(context: RunContext, shelf: int, deadly: bool = False) -> str:
        """What is on a shelf."""
        tell("visit", f"read {shelf}", context.turn_id)
        if deadly:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(READ_S)
        return f"shelf {shelf} is half full"

    @shop.tool(effect=Effect.LOCAL_WRITE)
    def order(context: RunContext, item: str) -> str:
        """Order an item."""
        return _write(context, "order")

    @shop.tool(effect=Effect.NETWORK)
    def ship(context: RunContext, item: str) -> str:
        """Ship an item."""
        return _write(context, "ship")

    @shop.on_usage
    def count_usage(usage: Any) -> None:
        tell("visit", "usage", usage.turn_id)

    @shop.on_turn_end
    def note_end(end: Any) -> None:
        tell("visit", "ended", end.turn_id, ending=str(end.result.ending))

    del look, order, ship, count_usage, note_end
    return shop


def _write(context: RunContext, what: str) -> str:
    """Write once for each turn and kind of write, because the key belongs to the order and not to the call."""
    tell("write", what, context.turn_id, key=f"{context.turn_id} {what}", call=context.call_id)
    time.sleep(WRITE_S)
    return "ok"


if EFFECTS in os.environ:  # in a worker, or where turns are submitted
    brain = make_shop()
