"""A second process with its own client, which executes requests: `python -m tests.support.elsewhere`.

It reads one JSON request on each line, and writes one line as the answer. A request may name a place at which the
process dies.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.errors import BrainqError

ROOT = Path(__file__).parents[2]


class Refused(Exception):
    """The error of a verb that raised in the other process. `kind` is the name of its class."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Elsewhere:
    """The other process, as this one sees it."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.elsewhere"],
            env={**os.environ, **environment},
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def client(self, verb: str, *args: Any, **named: Any) -> Any:
        return self.ask(["client"], verb, args, named)

    def handle(self, turn: TurnHandle | str, verb: str, *args: Any, **named: Any) -> Any:
        turn_id = turn if isinstance(turn, str) else turn.turn_id
        return self.ask(["handle", turn_id], verb, args, named)

    def session(self, session_id: str, verb: str, *args: Any, **named: Any) -> Any:
        return self.ask(["session", session_id], verb, args, named)

    def release_flag(self, session_id: str, flag_id: str) -> Any:
        return self.ask(["flag", session_id, flag_id], "release", (), {})

    def dies(self, place: str, target: list[str], verb: str, *args: Any, **named: Any) -> None:
        """Send a request, and kill the process once it reaches `place`, such as `store.approvals.decided`."""
        self._send({"target": target, "verb": verb, "args": args, "named": named, "die": place})
        assert self.process.wait(120) == -signal.SIGKILL, f"it did not come to {place}"

    def ask(self, target: list[str], verb: str, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Send a request, and return the answer. Raises Refused."""
        self._send({"target": target, "verb": verb, "args": args, "named": named})
        assert self.process.stdout is not None
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise Refused(answer["error"], answer["text"])
        return answer["value"]

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()

    def _send(self, request: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()


def main() -> None:
    """Serve standard input until it ends."""
    client = Client()
    for line in sys.stdin:
        request = json.loads(line)
        if "die" in request:
            _die_at(client, request["die"])
        try:
            answer = {"value": _plain(_do(client, **{k: v for k, v in request.items() if k != "die"}))}
        except BrainqError as refusal:
            answer = {"error": type(refusal).__name__, "text": str(refusal)}
        print(json.dumps(answer, default=str), flush=True)
    client.close()


def _do(client: Client, target: list[str], verb: str, args: list[Any], named: dict[str, Any]) -> Any:
    kind, *ids = target
    match kind:
        case "handle":
            found: Any = client.handle(*ids)
        case "session":
            found = client.session(*ids)
        case "flag":
            found = client.session(ids[0]).flag(ids[1])
        case _:
            found = client
    member = getattr(found, verb)
    return member(*args, **named) if callable(member) else member


def _die_at(client: Client, place: str) -> None:
    found: Any = wiring_of(client)
    *path, method = place.split(".")
    for name in path:
        found = getattr(found, name)

    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    setattr(type(found), method, die)


def _plain(value: Any) -> Any:
    match value:
        case BaseModel():
            return value.model_dump(mode="json")
        case tuple() | list():
            return [_plain(part) for part in value]
        case TurnHandle():
            joined = _plain(value.joined)
            return {"turn_id": value.turn_id, "created": value.created, "joined": joined}
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return dataclasses.asdict(value)
        case _ if hasattr(value, "id"):
            return value.id
        case _:
            return value


if __name__ == "__main__":
    main()
