"""Restate: its server, a Node service (restate_service.mjs), and turns sent to its ingress."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab.faults.rivals.desk import Desk, role_and_desk

STARTS_WITHIN_S = 60.0
WAIT_S = 120.0


def installed() -> Path:
    return Path(os.environ["COMPARE_NODE"])


def serve(desk: Desk) -> None:
    ports = {name: desk.port(name) for name in ("ingress", "admin", "fabric")}
    server = subprocess.Popen(
        [installed() / "node_modules/.bin/restate-server", "--no-logo", "--base-dir", desk.directory / "restate"],
        env={
            **os.environ,
            "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ports['ingress']}",
            "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{ports['admin']}",
            "RESTATE_BIND_ADDRESS": f"127.0.0.1:{ports['fabric']}",
            "RESTATE_LISTEN_MODE": "tcp",
            "RESTATE_LOG_FILTER": "warn",
            "DO_NOT_TRACK": "1",
        },
        stdin=subprocess.DEVNULL,
    )
    _post(f"http://127.0.0.1:{ports['admin']}/deployments", {"uri": f"http://127.0.0.1:{desk.port('service')}"})
    (desk.directory / "registered").touch()
    sys.stdin.read()
    server.terminate()
    server.wait()


def work(desk: Desk) -> None:
    service = installed() / "faults_service.mjs"
    shutil.copy(Path(__file__).with_name("restate_service.mjs"), service)
    node = next(installed().glob("node_modules/node-linux-*/bin/node"))
    command = [str(node), str(service), str(desk.port("service")), desk.setting]
    os.execve(node, command, {**os.environ, "NODE_ENV": "production"})


def submit(desk: Desk) -> None:
    while not (desk.directory / "registered").exists():
        time.sleep(0.1)

    def run_turn(turn: str) -> None:
        url = f"http://127.0.0.1:{desk.port('ingress')}/Agent/{turn}/turn"
        request = urllib.request.Request(url, json.dumps(turn).encode(), {"content-type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=WAIT_S) as answer:
                said = answer.read().decode()
        except urllib.error.HTTPError as error:
            desk.end(turn, "failed", error.read().decode())
        except OSError as error:
            desk.end(turn, "failed", repr(error))
        else:
            desk.end(turn, "completed", said)

    with ThreadPoolExecutor(16) as threads:
        for turn in desk.fresh():
            threads.submit(run_turn, turn)


def _post(url: str, body: dict[str, str]) -> None:
    """Once both sides answer."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    end = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            urllib.request.urlopen(request, timeout=30).close()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    role, found = role_and_desk()
    {"server": serve, "worker": work, "client": submit}[role](found)
