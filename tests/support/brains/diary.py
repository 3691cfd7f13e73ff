"""A diary that tools and callbacks of every process write to, and gates at which they wait.

Both are in the directory that BRAINQ_TEST_DIR names. `diary` has one JSON object on each line, appended in one write. A
gate is open once a file of its name exists.
"""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any

DIRECTORY = "BRAINQ_TEST_DIR"
LONGEST_WAIT_S = 60.0


def directory() -> Path:
    return Path(os.environ[DIRECTORY])


def now() -> float:
    """Return the time for `at`: CLOCK_MONOTONIC, which is the same for all processes of the machine."""
    return time.monotonic()


def note(what: str, **facts: Any) -> None:
    """Append one line. `at` is its time."""
    row = {"at": now(), "pid": os.getpid(), "what": what, **facts}
    line = (json.dumps(row) + "\n").encode()
    handle = os.open(directory() / "diary", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(handle, line)
    finally:
        os.close(handle)


def notes(what: str = "", **facts: Any) -> list[dict[str, Any]]:
    """Return the lines with this `what` that contain all of `facts`."""
    path = directory() / "diary"
    text = path.read_text() if path.exists() else ""
    # A line that lies on two pages of the file comes in two parts to whoever reads meanwhile.
    rows = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
    return [
        row for row in rows if what in ("", row["what"]) and all(row.get(name) == fact for name, fact in facts.items())
    ]


def open_gate(name: str) -> None:
    (directory() / f"gate-{name}").touch()


def pass_gate(name: str) -> None:
    """Wait until the gate is open. Returns at once if `name` is empty."""
    if not name:
        return
    path, end = directory() / f"gate-{name}", time.monotonic() + LONGEST_WAIT_S
    while not path.exists():
        if time.monotonic() > end:
            raise TimeoutError(f"gate {name} was not opened")
        threading.Event().wait(0.01)


def order(name: str, value: str) -> None:
    """Leave an order for callbacks, such as `order("usage.raise", "3")`. An empty value removes it."""
    path = directory() / f"order-{name}"
    fresh = path.with_suffix(f".{os.getpid()}")
    fresh.write_text(value)
    fresh.replace(path)


def ordered(name: str) -> str:
    path = directory() / f"order-{name}"
    return path.read_text() if path.exists() else ""
