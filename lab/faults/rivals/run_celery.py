"""Celery: a coordinator task that waits for the write's task, as in lab/compare, each by a worker of its own.

`late acks` is what its documentation advises where work must not be lost; its default is to acknowledge before a task
runs. A message of a dead worker is visible again after 20 s here, by default after an hour; Celery looks every 100 s.
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from celery import Celery

from lab.faults.rivals.desk import Desk, role_and_desk, write

VISIBLE_AGAIN_S = 20
WAIT_S = 150.0
LATE = "FAULTS_LATE_ACKS"
QUEUES = {"worker": "writes", "coordinator": "turns"}

app = Celery("faults", broker=os.environ.get("FAULTS_REDIS"), backend=os.environ.get("FAULTS_REDIS"))
app.conf.update(
    task_acks_late=bool(os.environ.get(LATE)),
    task_reject_on_worker_lost=bool(os.environ.get(LATE)),
    worker_prefetch_multiplier=1,
    broker_transport_options={"visibility_timeout": VISIBLE_AGAIN_S},
    broker_connection_retry_on_startup=True,
    task_routes={"turn": "turns", "write_note": "writes"},
)


@app.task(name="write_note")
def write_note(turn: str) -> str:
    return write(turn)


@app.task(name="turn", acks_late=False)
def agent_turn(turn: str) -> str:
    sent: Any = write_note
    return sent.delay(turn).get(timeout=WAIT_S, disable_sync_subtasks=False)


def submit(desk: Desk) -> None:
    def run_turn(turn: str) -> None:
        try:
            sent: Any = agent_turn
            said = sent.delay(turn).get(timeout=WAIT_S)
        except Exception as error:
            desk.end(turn, "failed", repr(error))
        else:
            desk.end(turn, "completed", said)

    with ThreadPoolExecutor(16) as threads:
        for turn in desk.fresh():
            threads.submit(run_turn, turn)


def main() -> None:
    role, desk = role_and_desk()
    there = {"FAULTS_REDIS": f"redis://127.0.0.1:{desk.port('redis')}/0"}
    there |= {LATE: "1"} if desk.setting == "late acks" else {}
    if role == "server":
        from brainq.app.devserver.redis_server import EmbeddedServer

        with EmbeddedServer(desk.directory / "redis", port=desk.port("redis")):
            sys.stdin.read()
    elif role in QUEUES:
        pool = ["-P", "threads"] if role == "coordinator" else []
        arguments = ["-Q", QUEUES[role], "-n", f"{role}@%h", "-c", "8", "-l", "ERROR", *pool]
        command = [sys.executable, "-m", "celery", "-A", "lab.faults.rivals.run_celery", "worker", *arguments]
        os.execve(sys.executable, command, {**os.environ, **there})
    elif "FAULTS_REDIS" in os.environ:
        submit(desk)
    else:  # Celery reads its settings when this module is loaded: load it again
        sys.exit(subprocess.call([sys.executable, *sys.orig_argv[1:]], env={**os.environ, **there}))


if __name__ == "__main__":
    main()
