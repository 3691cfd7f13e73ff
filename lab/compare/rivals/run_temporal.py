# pyright: basic, reportMissingImports=false
"""Temporal: its dev server with a database file, a worker process, and a client.

The model, each tool and each finalizer step is an activity. The workflow runs in the SDK's sandbox, as it does unless
switched off.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from temporalio import activity, workflow
from temporalio.client import Client
from temporalio.service import RPCError
from temporalio.worker import Worker

with workflow.unsafe.imports_passed_through():
    from lab.compare import turn
    from lab.compare.ports import free_port
    from lab.compare.rows import Rows
    from lab.compare.serving import Ended, options, serve_async

QUEUE = "turns"
ACTIVITIES_AT_ONCE, THREADS = 1000, 8
STARTS_WITHIN_S = 60.0


class Activities:
    """The worker's effects on the world. Sync ones run in a thread pool."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    @activity.defn
    async def model(self, messages: list[str]) -> list[str]:
        await asyncio.sleep(turn.MODEL_S)
        return [turn.ANSWER] if len(messages) > 1 else ["read_note", "read_note", "read_note", "write_note"]

    @activity.defn
    async def read_note(self, path: str) -> str:
        await asyncio.sleep(turn.READ_S)
        return turn.note(path)

    @activity.defn
    async def write_note(self, path: str, text: str) -> str:
        await asyncio.sleep(turn.WRITE_S)
        return turn.wrote(path, text)

    @activity.defn
    def log(self, turn_id: str, answer: str) -> None:
        self._rows.log(turn_id, answer)

    @activity.defn
    def decision(self, turn_id: str, calls: int) -> None:
        self._rows.decision(turn_id, calls)

    @activity.defn
    async def result(self) -> float:
        return time.time()

    @activity.defn
    async def nothing_to_do(self, name: str) -> None:
        return None


LIMIT: Any = {"start_to_close_timeout": timedelta(minutes=1)}


@workflow.defn
class AgentTurn:
    @workflow.run
    async def run(self, question: str) -> dict[str, Any]:
        turn_id = workflow.info().workflow_id
        messages = [question]
        asked = await workflow.execute_activity_method(Activities.model, messages, **LIMIT)
        reads = asked.count("read_note")
        messages += await asyncio.gather(
            *(workflow.execute_activity_method(Activities.read_note, path, **LIMIT) for path in turn.READS[:reads])
        )
        messages.append(await workflow.execute_activity_method(Activities.write_note, args=[*turn.WRITE], **LIMIT))
        (answer,) = await workflow.execute_activity_method(Activities.model, messages, **LIMIT)
        calls, final_steps, result_at = len(messages) - 1, 0, 0.0
        for name in turn.FINAL_STEPS:
            if name == "log":
                await workflow.execute_activity_method(Activities.log, args=[turn_id, answer], **LIMIT)
            elif name == "decision":
                await workflow.execute_activity_method(Activities.decision, args=[turn_id, calls], **LIMIT)
            elif name == "result":
                result_at = await workflow.execute_activity_method(Activities.result, **LIMIT)
            else:
                await workflow.execute_activity_method(Activities.nothing_to_do, name, **LIMIT)
            final_steps += 1
        return {"text": answer, "calls": calls, "final_steps": final_steps, "result_at": result_at}


async def connect(address: str) -> Client:
    """Connect as soon as the starting server answers."""
    end = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            return await Client.connect(address)
        except (RPCError, RuntimeError):
            if time.monotonic() > end:
                raise
            await asyncio.sleep(0.2)


async def work(address: str, directory: Path) -> None:
    """Run the worker process until it is terminated."""
    client = await connect(address)
    does = Activities(Rows(directory / "rows.db"))
    activities = [
        *(does.model, does.read_note, does.write_note),
        *(does.log, does.decision, does.result, does.nothing_to_do),
    ]
    with ThreadPoolExecutor(THREADS) as threads:
        worker = Worker(
            client,
            task_queue=QUEUE,
            workflows=[AgentTurn],
            activities=activities,
            activity_executor=threads,
            max_concurrent_activities=ACTIVITIES_AT_ONCE,
        )
        await worker.run()


async def produce(address: str) -> None:
    """Run turns as requested."""
    client = await connect(address)

    async def one() -> Ended:
        submitted_at = time.time()
        ended = await client.execute_workflow(AgentTurn.run, turn.QUESTION, id=uuid4().hex, task_queue=QUEUE)
        latency_s = ended["result_at"] - submitted_at
        return Ended(latency_s, ended["text"], ended["calls"], ended["final_steps"])

    async def run(count: int) -> list[Ended]:
        return list(await asyncio.gather(*(one() for _ in range(count))))

    await serve_async(run)


def main() -> None:
    if sys.argv[1] == "worker":
        asyncio.run(work(sys.argv[2], Path(sys.argv[3])))
        return
    given = options()
    address = f"127.0.0.1:{free_port()}"
    binary = Path(sys.executable).with_name("temporal")
    server = subprocess.Popen(
        [
            *(binary, "server", "start-dev", "--headless", "--ip", "127.0.0.1", "--port", address.split(":")[1]),
            *("--db-filename", given.directory / "temporal.db", "--log-level", "error"),
            # As brainq's own SQLite; its defaults sync every statement's transaction to the disk.
            *("--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )
    worker = None
    try:
        worker = subprocess.Popen(
            [sys.executable, "-m", "lab.compare.rivals.run_temporal", "worker", address, given.directory],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr,
        )
        asyncio.run(produce(address))
    finally:
        for process in (worker, server):
            if process is not None:
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
