"""llmock as a process: a model server with both wires, scripted faults, and a verdict on its client."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from tests.integration.engine.models.asking import WireName
from tests.support.wait import wait_until


class LlmockServer:
    """Started on a free port; `stop` kills its process group.

    With a pause between chunks llmock notices when its client hangs up; else it has sent all by then, and its
    verdict takes a malformed stream that was refused for one that was accepted.
    """

    def __init__(self, *, chunk_delay_ms: int = 5) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        program = Path(sys.executable).with_name("llmock")
        self._process = subprocess.Popen(
            [str(program), "serve", f"--port={port}", "--log-level=error", f"--stream-chunk-delay-ms={chunk_delay_ms}"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def base_url(self, name: WireName) -> str:
        """Where the SDK of that vendor finds its API."""
        return f"{self.url}/v1" if name == "openai" else f"{self.url}/anthropic"

    def wait_ready(self) -> None:
        wait_until(self._answers, "llmock answers", timeout_s=60, every_s=0.05)

    def stop(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()

    def reset(self) -> None:
        self._ask("POST", "/_llmock/reset")

    def behave(self, *behaviors: dict[str, Any]) -> None:
        self._ask("POST", "/_llmock/scenario", {"behaviors": behaviors})

    def pending(self) -> list[dict[str, Any]]:
        """Behaviours that no request has met yet."""
        return self._ask("GET", "/_llmock/scenario")["pending"]

    def requests(self) -> list[dict[str, Any]]:
        return self._ask("GET", "/_llmock/requests")["requests"]

    def findings(self) -> list[str]:
        """What the client did wrong, errors and warnings, as words.

        `no_backoff` is left out: a busy machine makes the pauses it compares longer. `test_retry.py` holds our pauses.
        """
        found = [finding["code"] for finding in self._ask("GET", "/_llmock/verdict")["findings"]]
        return [code for code in found if code != "no_backoff"]

    def _answers(self) -> bool:
        assert self._process.poll() is None, "llmock ended instead of starting"
        try:
            self._ask("GET", "/health")
        except OSError:
            return False
        return True

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, {"content-type": "application/json"}, method=method)
        with urlopen(request, timeout=10) as response:
            return json.load(response)
