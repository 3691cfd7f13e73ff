# pyright: basic, reportMissingImports=false
"""Tries the features of a client one by one, and prints a line of JSON for each. Every script here uses it."""

from __future__ import annotations

import base64
import inspect
import json
import sys
import time
import traceback
import urllib.request
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

URL, KEY = sys.argv[1:3]
HEADERS = {"Authorization": f"Bearer {KEY}"}
PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PICTURE = "data:image/png;base64," + base64.b64encode(PNG).decode()
SEEN = f"A picture: image/png of {len(PNG)} bytes."
STORY = "Once there was a fox 🦊 in the snow. " * 6
PLACE = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
    "additionalProperties": False,
}
PATIENCE_S = 60.0


class Absent(Exception):
    """The error of a feature that the client does not have."""


class Untried(Exception):
    """The error of a feature that was not run, though the client may have it."""


def report(package: str, features: dict[str, Callable[[], Any]]) -> None:
    """Run each feature, which is a function or a coroutine. A feature that raises nothing works."""
    import asyncio

    print(json.dumps({"version": version(package)}), flush=True)
    for name, feature in features.items():
        try:
            made = feature()
            if inspect.isawaitable(made):
                asyncio.run(asyncio.wait_for(made, PATIENCE_S))  # pyright: ignore[reportArgumentType]
            told = {"feature": name, "outcome": "works"}
        except Absent as absent:
            told = {"feature": name, "outcome": "absent", "why": str(absent)}
        except Untried as untried:
            told = {"feature": name, "outcome": "untried", "why": str(untried)}
        except BaseException as failure:
            traceback.print_exc()
            why = f"{type(failure).__name__}: {failure}".splitlines()[0][:300]
            told = {"feature": name, "outcome": "fails", "why": why}
        print(json.dumps(told), flush=True)


def same(seen: object, wanted: object) -> None:
    if seen != wanted:
        raise AssertionError(f"{seen!r} is not {wanted!r}")


def asked(method: str, path: str, body: Any = None) -> Any:
    """Send a request to the gateway's own routes, for what a person does beside the client."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        f"{URL}{path}", data, {**HEADERS, "Content-Type": "application/json"}, method=method
    )
    with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def until(find: Callable[[], Any], what: str) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.05)
    raise TimeoutError(f"never came: {what}")


def approve_one() -> None:
    """Approve the open approval, as a person elsewhere does."""
    found = until(lambda: asked("GET", "/v1/approvals")["approvals"], "an approval")
    asked("POST", f"/v1/approvals/{found[0]['id']}/approve")


def raised(kind: type[BaseException], made: Callable[[], Any], word: str = "") -> BaseException:
    """Return what the client raises for a failed turn. Raises AssertionError if the turn succeeds."""
    try:
        found = made()
    except kind as failure:
        if word not in str(failure):
            raise AssertionError(f"{word!r} is not in {failure!s}") from None
        return failure
    raise AssertionError(f"it was told as success: {found!r}"[:300])


def ended(turn_id: str) -> str:
    """Wait for the end of a turn, and return its ending."""
    endings = ("completed", "timed_out", "cancelled", "failed")

    def state() -> str | None:
        found = asked("GET", f"/v1/turns/{turn_id}")["state"]
        return found if found in endings else None

    return until(state, "the turn's end")


def running() -> str:
    """Return the id of the running turn."""
    turns = until(lambda: asked("GET", "/v1/turns?state=active&limit=5")["turns"], "a turn that runs")
    return turns[0]["turn_id"]


def cancel_running() -> None:
    """Cancel the running turn by the gateway's own route, because closing the client's request only stops reading."""
    turn_id = running()
    asked("POST", f"/v1/turns/{turn_id}/cancel")
    same(ended(turn_id), "cancelled")
