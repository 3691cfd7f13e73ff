"""A brain whose tools run in child processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from brainq.contracts.call import ChildTurn
from brainq.contracts.file import File
from brainq.contracts.status import Effect
from brainq.contracts.turn import Limits
from brainq.engine.brain.brain import Brain
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.results import Partial, Pending, WithFiles
from tests.support.blobs import png

brain = Brain("processes", "openai:x")


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def add(a: int, b: int = 2) -> dict[str, int]:
    return {"sum": a + b, "pid": os.getpid()}


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
async def async_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def spin(pid_file: str) -> None:
    """Busy for ever, with a child process of its own."""
    inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pid_file).write_text(f"{os.getpid()} {inner.pid}")
    while True:
        pass


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def block_in_c(pid_file: str) -> None:
    """Hold the interpreter lock in one C call, with a child process of its own."""
    inner = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    Path(pid_file).write_text(f"{os.getpid()} {inner.pid}")
    sum(range(10**13))


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def die(status: int) -> None:
    os._exit(status)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def fail(message: str) -> None:
    raise ValueError(message)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def cooperate(ctx: RunContext) -> Partial:
    ctx.cite_local("before")
    ctx.progress(0)
    ctx.token.wait(600.0)
    return Partial(ctx.token.reason)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def cite(ctx: RunContext) -> list[str]:
    ctx.cite_local("a.md", "A")
    ctx.cite_web("https://example.org/")
    ctx.rendered("/tmp/plot.png")
    ctx.block_tool()
    return [ctx.session_id, ctx.turn_id, ctx.call_id, ctx.idempotency_key, str(ctx.attempt), str(ctx.cwd)]


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def heavy_imports() -> list[str]:
    return sorted({"celery", "kombu", "redis", "sqlalchemy"} & set(sys.modules))


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def wait_outside(ctx: RunContext) -> Pending:
    assert ctx.outside_token() == ctx.outside_token()
    return Pending(ctx.outside_token(), timeout_s=7.0)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def ask_child() -> ChildTurn:
    options = {"limits": Limits(max_steps=2), "tags": ("a",)}
    return ChildTurn("Sum it up.", session_id="other", timeout_s=5.0, options=options)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def change(ctx: RunContext) -> None:
    ctx.record_change("a.txt", None, "new")
    ctx.record_change("a.txt", "new", "")
    ctx.record_change("b.txt", "old", None)
    ctx.record_change("big.txt", None, "x" * 2_000_000)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def wait_until_ready(ctx: RunContext, timeout_s: float = 20.0) -> bool:
    return ctx.wait_ready(timeout_s)


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def count_rows(ctx: RunContext) -> str:
    for done in (1, 2):
        ctx.progress(done, 3, "rows")
    return "counted"


@brain.tool(effect=Effect.READ_ONLY, isolation="process")
def draw() -> WithFiles:
    return WithFiles("drawn", [File(png(), name="chart.png")])
