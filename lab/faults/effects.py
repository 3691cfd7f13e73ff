"""The effect server as the suite sees it: started, told whom to hold, and its log read."""

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
    """What was waited for did not come; `str(error)` says what."""


class Effects:
    """What the server has noted so far. One reader a process."""

    def __init__(self, url: str, log: Path) -> None:
        self.url = url
        self._log = log
        self._read = 0
        self._lines: list[Line] = []

    def hold(self, place: str, turn: str) -> None:
        """Hold who comes to `place` with `turn` first."""
        self._post("hold", {"place": place, "turn": turn})

    def release(self) -> None:
        """Answer all who are held."""
        self._post("release", {})

    def lines(self) -> list[Line]:
        """Every line that is whole."""
        with self._log.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        self._lines += [json.loads(line) for line in whole.splitlines()]
        return self._lines

    def writes(self) -> Counter[str]:
        """How often each write ran, by its key."""
        return Counter(str(line["key"]) for line in self.lines() if line["kind"] == "write")

    def seen(self, place: str, turn: str, after: float = 0.0) -> Line | None:
        """The first line of `turn` at `place` that is younger than `after`, by time.monotonic()."""
        for line in self.lines():
            if line["at"] > after and line["turn"] == turn and line["place"] == place:
                return line
        return None

    def wait_seen(self, place: str, turn: str, after: float = 0.0, timeout_s: float = PATIENCE_S) -> Line:
        """The same, once it is there. Raises NotSeen."""
        return wait_for(lambda: self.seen(place, turn, after), f"turn {turn} comes to {place!r}", timeout_s)

    def ended(self) -> dict[str, float]:
        """When each turn that has ended did so, by time.monotonic()."""
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
    """What `ask` returns, once it is something. Raises NotSeen after `timeout_s`."""
    end = time.monotonic() + timeout_s
    while True:
        if found := ask():
            return found
        if time.monotonic() >= end:
            raise NotSeen(f"waited {timeout_s:g} s in vain: {what}")
        time.sleep(LOOK_EVERY_S)


def end_in_order(*_: object) -> None:
    """A handler of SIGTERM: what was started is stopped, and small disks are unmounted, on the way out."""
    sys.exit(TERMINATED)


@contextmanager
def effect_server(directory: Path, address: str = "127.0.0.1") -> Generator[Effects]:
    """A server of its own at this address, with its log in `directory`."""
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
