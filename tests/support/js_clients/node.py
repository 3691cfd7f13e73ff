"""A script in node that uses the packages of `make js-clients`. It gets commands, and returns their results."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.support.js_clients import FOLDER


class Node:
    """A running script. It reads a command on each line, as JSON, and answers with one line of JSON."""

    def __init__(self, script: str, url: str) -> None:
        # With `-e` node finds the packages of its working directory, and no file of this one.
        source = "\n".join((Path(__file__).parent / name).read_text() for name in ("breaking.mjs", script))
        self._process = subprocess.Popen(
            ["node", "--no-warnings", "--input-type=module", "-e", source, url],
            cwd=FOLDER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **command: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, f"node ended: {self._process.wait(30)}"
        told = json.loads(answer)
        assert "thrown" not in told, told["thrown"]
        return told

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(30)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
