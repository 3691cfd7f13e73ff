"""The obedient model with tools that run in child processes, and end as tools should not."""

from __future__ import annotations

import asyncio
import os
import signal
import time

from brainq import Brain, Effect, RunContext, ScriptedProvider
from tests.support.brains import diary
from tests.support.brains.obedient import obey

brain = Brain("isolated", ScriptedProvider(rules=obey), "Do as you are told.")
APP = "tests.support.brains.isolated:brain"


@brain.tool(effect=Effect.READ_ONLY, isolation="process", timeout_s=60.0)
def warm() -> str:
    """Have the child up before a call whose time is short."""
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
