"""brainq: its four pools; the serial worker, where the write runs, is the one that is killed."""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from brainq import Brain, Client, Effect, ModelReply, ModelRequest, RunContext, TraceStatus
from brainq.app.devserver.local_fleet import LocalFleet
from brainq.app.devserver.redis_server import EmbeddedServer
from brainq.client.connection import wiring_of
from brainq.testing import ScriptedProvider, calls, says
from lab.faults.rivals.desk import Desk, role_and_desk
from lab.faults.rivals.desk import write as write_to_the_world

SETTING = "FAULTS_SETTING"
WAIT_S = 120.0


def answer(request: ModelRequest) -> ModelReply:
    return calls(("write", {})) if request.step == 1 else says("done")


brain = Brain("rival", ScriptedProvider(rules=answer), "Write.")


@brain.tool(effect=Effect.NETWORK, idempotent=os.environ.get(SETTING) == "idempotent=True")
def write(context: RunContext) -> str:
    """Write."""
    return write_to_the_world(context.turn_id)


def environment_of(desk: Desk) -> dict[str, str]:
    return {
        "BRAINQ_APP": "lab.faults.rivals.run_brainq:brain",
        "BRAINQ_REDIS_URL": f"redis://127.0.0.1:{desk.port('redis')}/0",
        "BRAINQ_SQL_URL": f"sqlite:///{desk.directory / 'rival.db'}",
        SETTING: desk.setting,
    }


def serve(desk: Desk) -> None:
    """Redis, and the pools that nobody kills."""
    with EmbeddedServer(desk.directory / "redis", port=desk.port("redis")):
        pools = ("coordinator", "parallel", "finalizer")
        with LocalFleet(desk.directory / "workers", environment_of(desk), pools=pools):
            (desk.directory / "serves").touch()
            sys.stdin.read()


def work(desk: Desk) -> None:
    _wait_served(desk)
    command = ["-A", "brainq.workers.serial", "worker", "-n", "serial@%h", "-c", "16", "-l", "ERROR"]
    arguments = [
        sys.executable,
        "-m",
        "brainq.workers.tasks.celery_command",
        *command,
        "--without-gossip",
        "--without-mingle",
    ]
    os.execve(sys.executable, arguments, {**os.environ, **environment_of(desk)})


def submit(desk: Desk) -> None:
    _wait_served(desk)
    os.environ.update(environment_of(desk))
    with Client(brain=brain) as client, ThreadPoolExecutor(16) as threads:
        for turn in desk.fresh():
            threads.submit(run_turn, client, desk, turn)


def run_turn(client: Client, desk: Desk, turn: str) -> None:
    handle = client.submit(f"s-{turn}", "Write.", turn_id=turn)
    result = handle.result(timeout_s=WAIT_S)
    (call,) = wiring_of(client).state.calls.trace(handle.session_id, turn)
    said = "unknown" if call.status is TraceStatus.UNKNOWN else "written"
    desk.end(turn, str(result.ending), said)


def _wait_served(desk: Desk) -> None:
    while not Path(desk.directory / "serves").exists():
        time.sleep(0.1)


if __name__ == "__main__":
    role, found = role_and_desk()
    {"server": serve, "worker": work, "client": submit}[role](found)
