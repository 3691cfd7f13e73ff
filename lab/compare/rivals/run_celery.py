# pyright: basic, reportMissingImports=false
"""Plain Celery on Redis, with a coordinator task that waits for the tasks it sends.

As its documentation advises where work must not be lost: late acks, rejected when a worker is lost, a prefetch of one.
Results are in Redis; the finalizer steps are a chain.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

from celery import Celery, chain, group

from lab.compare import turn
from lab.compare.rows import Rows
from lab.compare.serving import Ended, Options, options, serve

POOLS = {"turns": 100, "reads": 32, "writes": 1, "final": 8}
"""Threads a worker, as brainq's; with latencies as many as keep a turn from waiting for one."""

WIDE = {"turns": 400, "reads": 1000, "writes": 400, "final": 16}
WAIT_S = 600.0

app = Celery("compare", broker=os.environ.get("COMPARE_REDIS"), backend=os.environ.get("COMPARE_REDIS"))
app.conf.update(
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    worker_send_task_events=False,
    broker_connection_retry_on_startup=True,
    task_routes={"turn": "turns", "read_note": "reads", "write_note": "writes", "final": "final"},
)
rows = Rows(Path(os.environ.get("COMPARE_ROWS", "rows.db")))


@app.task(name="read_note")
def read_note(path: str) -> str:
    time.sleep(turn.READ_S)
    return turn.note(path)


@app.task(name="write_note")
def write_note(path: str, text: str) -> str:
    time.sleep(turn.WRITE_S)
    return turn.wrote(path, text)


def model(messages: list[str]) -> list[str]:
    time.sleep(turn.MODEL_S)
    return [turn.ANSWER] if len(messages) > 1 else ["read_note", "read_note", "read_note", "write_note"]


@app.task(name="turn", bind=True)
def agent_turn(self: Any, question: str) -> str:
    """Returns the id of the last finalizer step's result."""
    messages = [question]
    asked = model(messages)
    reads = group(read_note.s(path) for path in turn.READS[: asked.count("read_note")])
    messages += reads.apply_async().get(timeout=WAIT_S, disable_sync_subtasks=False)
    messages.append(write_note.delay(*turn.WRITE).get(timeout=WAIT_S, disable_sync_subtasks=False))
    (answer,) = model(messages)
    done = {"turn_id": self.request.id, "text": answer, "calls": len(messages) - 1, "final_steps": 0}
    first, *others = turn.FINAL_STEPS
    return cast("Any", chain(final.s(done, first), *(final.s(name) for name in others)))().id


@app.task(name="final")
def final(done: dict[str, Any], name: str) -> dict[str, Any]:
    if name == "log":
        rows.log(done["turn_id"], done["text"])
    elif name == "decision":
        rows.decision(done["turn_id"], done["calls"])
    elif name == "result":
        done["result_at"] = time.time()
    return {**done, "final_steps": done["final_steps"] + 1}


def run(count: int) -> list[Ended]:
    submitted = [(time.time(), agent_turn.delay(turn.QUESTION)) for _ in range(count)]
    last = [(at, app.AsyncResult(result.get(timeout=WAIT_S))) for at, result in submitted]
    ended = [(at, result.get(timeout=WAIT_S)) for at, result in last]
    return [Ended(done["result_at"] - at, done["text"], done["calls"], done["final_steps"]) for at, done in ended]


def worker(queue: str, threads: int) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [
            *(sys.executable, "-m", "celery", "-A", "lab.compare.rivals.run_celery", "worker"),
            *("-Q", queue, "-n", f"{queue}@%h", "-P", "threads", "-c", str(threads), "-l", "ERROR"),
            *("--without-gossip", "--without-mingle"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
    )


def main(given: Options) -> None:
    """Start the workers and serve. The environment must be set."""
    pools = WIDE if turn.MODEL_S else POOLS
    workers = [worker(queue, threads) for queue, threads in pools.items()]
    try:
        while len(app.control.ping(timeout=1.0)) < len(workers):
            if any(process.poll() is not None for process in workers):
                raise RuntimeError("a worker ended")
        serve(run)
    finally:
        for process in workers:
            process.terminate()
        for process in workers:
            process.wait()


if __name__ == "__main__":
    given = options()
    if "COMPARE_REDIS" in os.environ:
        main(given)
    else:
        # Celery reads its settings when this module is loaded: load it again with a Redis of its own.
        from brainq.app.devserver.redis_server import EmbeddedServer

        with EmbeddedServer(given.directory / "redis") as server:
            there = {"COMPARE_REDIS": server.url, "COMPARE_ROWS": str(given.directory / "rows.db")}
            sys.exit(subprocess.call([sys.executable, *sys.orig_argv[1:]], env={**os.environ, **there}))
