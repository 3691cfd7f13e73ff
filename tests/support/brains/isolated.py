"""The obedient model with tools that run in child processes and end in wrong ways."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from brainq import Brain, Effect, OutcomeUnknown, RunContext, ScriptedProvider, ToolError
from tests.support.brains import diary
from tests.support.brains.obedient import obey

brain = Brain("isolated", ScriptedProvider(rules=obey), "Do as you are told.")
APP = "tests.support.brains.isolated:brain"


@brain.tool(effect=Effect.READ_ONLY, isolation="process", timeout_s=60.0)
def warm() -> str:
    """Start the child before a call with little time."""
    return "warm"


@brain.tool(effect=Effect.NETWORK, isolation="process", timeout_s=60.0)
def die_after_effect(ctx: RunContext) -> None:
    diary.note("effect", key=ctx.idempotency_key)
    os.kill(os.getpid(), signal.SIGKILL)


@brain.tool(effect=Effect.NETWORK, isolation="process", timeout_s=1.0)
def overstay(ctx: RunContext) -> None:
    diary.note("effect", key=ctx.idempotency_key)
    while True:
        time.sleep(1.0)


@brain.tool(effect=Effect.NETWORK, timeout_s=0.5)
async def overstay_async(ctx: RunContext) -> None:
    diary.note("effect", key=ctx.idempotency_key)
    await asyncio.sleep(600.0)


@brain.tool(effect=Effect.READ_ONLY, isolation="process", timeout_s=60.0)
def die_reading() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _say(how: str) -> str:
    match how:
        case "error":
            raise ToolError("The shop is closed.\nIt opens at nine.", retryable=True)
        case "unknown":
            raise OutcomeUnknown("The shop hung up after the order was sent.")
        case _:
            raise LookupError("no such shop")


def _tools_that_say(**options: Any) -> None:
    def write(how: str) -> str:
        return _say(how)

    def read(how: str) -> str:
        return _say(how)

    async def write_async(how: str) -> str:
        return _say(how)

    where = options.get("isolation", "thread")
    brain.tool(effect=Effect.NETWORK, name=f"write_{where}", **options)(write)
    brain.tool(effect=Effect.READ_ONLY, name=f"read_{where}", **options)(read)
    brain.tool(effect=Effect.NETWORK, name=f"write_async_{where}", **options)(write_async)


_tools_that_say()
_tools_that_say(isolation="process")
