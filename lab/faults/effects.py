"""Starts the effect server, says whom it holds, and reads its log."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
LOOK_EVERY_S = 0.01
PATIENCE_S = 120.0
TERMINATED = 143
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Line = Mapping[str, Any]
T = TypeVar("T")


class NotSeen(Exception):
    """The error of a wait that ended in vain. Its text says what was waited for."""


class Effects:
    """The lines that the server has written so far. A process has one reader."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log
        self._read = 0
        self._lines: list[Line] = []

    def hold(self, place: str, turn: str) -> None:
        """Hold the first process that comes to `place` with `turn`."""
        self._post("hold", {"place": place, "turn": turn})

    def release(self) -> None:
        """Release every process that is held."""
        self._post("release", {})

    def lines(self) -> list[Line]:
        """Return every complete line."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines

    def writes(self) -> Counter[str]:
        """Return how often each write ran, by its key."""
        return Counter(str(line["key"]) for line in self.lines() if line["kind"] == "write")

    def seen(self, place: str, turn: str, after: float = 0.0) -> Line | None:
        """Return the first line of `turn` at `place` that is younger than `after` (time.monotonic()), or None."""
        for line in self.lines():
            if line["at"] > after and line["turn"] == turn and line["place"] == place:
                return line
        return None

    def wait_seen(self, place: str, turn: str, after: float = 0.0, timeout_s: float = PATIENCE_S) -> Line:
        """Wait for the line that `seen` returns. Raises NotSeen."""
        return wait_for(lambda: self.seen(place, turn, after), f"turn {turn} comes to {place!r}", timeout_s)

    def ended(self) -> dict[str, float]:
        """Return when each ended turn ended, by time.monotonic()."""
        found: dict[str, float] = {}
        for line in self.lines():
            if line["place"] == "ended":
                found.setdefault(str(line["turn"]), float(line["at"]))
        return found

    def _post(self, path: str, body: Mapping[str, Any]) -> None:
        request = urllib.request.Request(f"{self.url}/{path}", json.dumps(body).encode())
        with DIRECT.open(request, timeout=30):
            pass


def wait_for(ask: Callable[[], T | None], what: str, timeout_s: float = PATIENCE_S) -> T:
    """Wait until `ask` returns something, and return that. Raises NotSeen after `timeout_s` seconds."""
    end = time.monotonic() + timeout_s
    while True:
        if found := ask():
            return found
        if time.monotonic() >= end:
            raise NotSeen(f"waited {timeout_s:g} s in vain: {what}")
        time.sleep(LOOK_EVERY_S)


def end_in_order(*_: object) -> None:
    """Handle SIGTERM: exit, so that everything that was started is stopped and small disks are unmounted."""
    sys.exit(TERMINATED)


@contextmanager
def effect_server(directory: Path, address: str = "127.0.0.1") -> Generator[Effects]:
    """Run an effect server at this address inside the block, with its log in `directory`."""
    log = directory / "effects.log"
    log.touch()
    process = subprocess.Popen(
        [sys.executable, "-m", "lab.faults.effect_server", str(log), address],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield Effects(f"http://{address}:{int(process.stdout.readline())}", log)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.kill()
        process.wait()
