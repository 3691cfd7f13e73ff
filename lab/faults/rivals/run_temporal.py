# pyright: basic, reportMissingImports=false
"""Temporal: its dev server with a database file, a worker process, a client. A write has ten seconds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio import activity, workflow
from temporalio.client import Client, WorkflowFailureError
from temporalio.common import RetryPolicy
from temporalio.service import RPCError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from lab.faults.rivals.desk import Desk, role_and_desk, write

QUEUE = "faults"
STARTS_WITHIN_S = 60.0
LIMIT: dict[str, Any] = {"start_to_close_timeout": timedelta(seconds=10)}


@activity.defn
def model(turn: str) -> str:
    return "asked"


@activity.defn
def write_note(turn: str) -> str:
    return write(turn)


@workflow.defn
class AgentTurn:
    @workflow.run
    async def run(self, turn: str, setting: str) -> str:
        await workflow.execute_activity(model, turn, **LIMIT)
        once = {"retry_policy": RetryPolicy(maximum_attempts=1)} if setting == "maximum_attempts=1" else {}
        said = await workflow.execute_activity(write_note, turn, **LIMIT, **once)
        await workflow.execute_activity(model, turn, **LIMIT)
        return said


async def connect(desk: Desk) -> Client:
    end = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            return await Client.connect(f"127.0.0.1:{desk.port('temporal')}")
        except (RPCError, RuntimeError):
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


async def work(desk: Desk) -> None:
    client = await connect(desk)
    with ThreadPoolExecutor(16) as threads:
        activities: Any = [model, write_note]
        await Worker(
            client, task_queue=QUEUE, workflows=[AgentTurn], activities=activities, activity_executor=threads
        ).run()


async def submit(desk: Desk) -> None:
    client, turns, running = await connect(desk), desk.fresh(), set[asyncio.Task[None]]()

    async def run_turn(turn: str) -> None:
        try:
            said = await client.execute_workflow(AgentTurn.run, args=[turn, desk.setting], id=turn, task_queue=QUEUE)
        except WorkflowFailureError as error:
            desk.end(turn, "failed", repr(error.cause))
        else:
            desk.end(turn, "completed", said)

    while True:
        turn = await asyncio.to_thread(next, turns)
        running.add(asyncio.create_task(run_turn(turn)))


def serve(desk: Desk) -> None:
    binary = Path(sys.executable).with_name("temporal")
    address = ["--ip", "127.0.0.1", "--port", str(desk.port("temporal"))]
    file = ["--db-filename", str(desk.directory / "temporal.db"), "--log-level", "error"]
    server = subprocess.Popen([binary, "server", "start-dev", "--headless", *address, *file], stdin=subprocess.DEVNULL)
    sys.stdin.read()
    server.terminate()
    server.wait()


if __name__ == "__main__":
    role, found = role_and_desk()
    if role == "server":
        serve(found)
    else:
        asyncio.run(work(found) if role == "worker" else submit(found))
