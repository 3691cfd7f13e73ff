"""The brain and the producer of the upgrade test.

The file is copied next to each build and run by both, so it imports only public names.

`python shop.py BUILD SECONDS` submits turns until the time is over, and prints their ids, one per line.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from brainq import Brain, Client, Effect, Limits, ModelReply, ModelRequest, RunContext
from brainq.testing import ScriptedProvider, calls, says

LEDGER = "UPGRADE_LEDGER"
STEP_S = 0.2
PRICED = "gemini-2.5-flash"
"""A model in the price list.

With its price and a limit of its output, the worst-case cost of a call is known. Under a budget, calls with an unknown
cost run one at a time, so most turns of the load would not end in time.
"""
EVERY = "UPGRADE_EVERY_S"
SESSIONS = 7


def answer(request: ModelRequest) -> ModelReply:
    """Return the reply of the model: two reads and a write, then a second write, then the answer."""
    time.sleep(STEP_S)
    if request.step == 1:
        return calls(("look", {"shelf": 1}), ("look", {"shelf": 2}), ("order", {"item": "apples"}))
    return calls(("ship", {"item": "pears"})) if request.step == 2 else says("done")


brain = Brain(
    "shop",
    ScriptedProvider(rules=answer, name=PRICED),
    "You keep a shop.",
    limits=Limits(max_output_tokens=1000),
)


@brain.tool(effect=Effect.READ_ONLY)
def look(shelf: int) -> str:
    """What is on a shelf."""
    time.sleep(0.05)
    return f"shelf {shelf} is half full"


def _write(context: RunContext, kind: str) -> str:
    line = f"{kind} {context.turn_id} {context.call_id}\n"
    file = os.open(os.environ[LEDGER], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(file, line.encode())  # one write of a short line: lines of several processes do not mix
    finally:
        os.close(file)
    time.sleep(0.1)
    return "ok"


@brain.tool(effect=Effect.LOCAL_WRITE)
def order(context: RunContext, item: str) -> str:
    """Order an item."""
    return _write(context, "order")


@brain.tool(effect=Effect.NETWORK)
def ship(context: RunContext, item: str) -> str:
    """Ship an item."""
    return _write(context, "ship")


def main() -> None:
    build, seconds = sys.argv[1], float(sys.argv[2])
    end, number = time.monotonic() + seconds, 0
    stop = Path(os.environ[LEDGER]).with_name(f"stop-{build}")
    with Client(brain=brain) as client:
        while time.monotonic() < end and not stop.exists():
            number += 1
            handle = client.submit(f"{build}-{number % SESSIONS}", f"order {number}")
            print(handle.turn_id, flush=True)
            time.sleep(float(os.environ[EVERY]))


if __name__ == "__main__":
    main()
