"""Restate: its server with default settings, a Node service, and a Node client; lab/compare/restate has both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from lab.compare.ports import free_port
from lab.compare.serving import options

INSTALLED = Path(os.environ["COMPARE_NODE"])
"""Where `npm ci` has put node_modules, and beside them copies of the service and the client."""

NODE = next(INSTALLED.glob("node_modules/node-linux-*/bin/node"))

STARTS_WITHIN_S = 60.0


def main() -> None:
    given = options()
    ingress, admin, fabric, service = (free_port() for _ in range(4))
    processes: list[subprocess.Popen[bytes]] = []
    try:
        processes.append(
            _start(
                [INSTALLED / "node_modules/.bin/restate-server", "--no-logo", "--base-dir", given.directory],
                {
                    "RESTATE_INGRESS__BIND_ADDRESS": f"127.0.0.1:{ingress}",
                    "RESTATE_ADMIN__BIND_ADDRESS": f"127.0.0.1:{admin}",
                    "RESTATE_BIND_ADDRESS": f"127.0.0.1:{fabric}",
                    "RESTATE_LISTEN_MODE": "tcp",
                    "RESTATE_LOG_FILTER": "warn",
                    "DO_NOT_TRACK": "1",
                },
            )
        )
        processes.append(_start([NODE, INSTALLED / "service.mjs", str(service)], {"NODE_ENV": "production"}))
        _register(f"http://127.0.0.1:{admin}", f"http://127.0.0.1:{service}")
        producer = subprocess.Popen([NODE, INSTALLED / "producer.mjs", f"http://127.0.0.1:{ingress}"])
        producer.wait()
    finally:
        for process in reversed(processes):
            process.terminate()
            process.wait()


def _start(command: list[str | Path], more: dict[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(command, env={**os.environ, **more}, stdin=subprocess.DEVNULL, stdout=sys.stderr)


def _register(admin: str, service: str) -> None:
    """Tell the server of the service, once both answer."""
    request = urllib.request.Request(
        f"{admin}/deployments", json.dumps({"uri": service}).encode(), {"content-type": "application/json"}
    )
    end = time.monotonic() + STARTS_WITHIN_S
    while True:
        try:
            urllib.request.urlopen(request, timeout=30).close()
        except (urllib.error.URLError, OSError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
        else:
            return


if __name__ == "__main__":
    main()
