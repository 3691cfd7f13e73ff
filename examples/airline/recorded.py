"""Recorded sessions: what customers said, what models answered, and how the airline looked afterwards."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TURN_ID = re.compile(r"(run-\d+)-t(\d+)")
_RECORDED = "AIRLINE_RECORDED"


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """One call of a recorded reply. `kind` is `read`, `write` or `generic`."""

    tool: str
    arguments: dict[str, Any]
    kind: str


@dataclass(frozen=True, slots=True)
class RecordedStep:
    """One reply of the model. Tokens are 0 where they were not recorded."""

    text: str
    calls: tuple[RecordedCall, ...]
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """One message of the customer and the replies to it."""

    user: str
    steps: tuple[RecordedStep, ...]


@dataclass(frozen=True, slots=True)
class RecordedSession:
    """One conversation. `session_id` tells its place in the file; `name` is what the recording calls it."""

    session_id: str
    name: str
    turns: tuple[RecordedTurn, ...]
    db_sha256: str

    def turn_id(self, number: int) -> str:
        """The id of the turn with this number, counted from 1."""
        return f"{self.session_id}-t{number:02}"

    @property
    def writes(self) -> list[tuple[str, RecordedCall]]:
        """(idempotency key, call) of every write, in order."""
        return [
            (f"{self.turn_id(number)}:c{step_number}-{index}", call)
            for number, turn in enumerate(self.turns, 1)
            for step_number, step in enumerate(turn.steps, 1)
            for index, call in enumerate(step.calls)
            if call.kind == "write"
        ]

    @property
    def writes_together(self) -> int:
        """The most writes that one reply holds."""
        steps = [step for turn in self.turns for step in turn.steps]
        return max((sum(call.kind == "write" for call in step.calls) for step in steps), default=0)


def place_of(turn_id: str) -> tuple[str, int]:
    """(session id, turn number) of a turn id made by `RecordedSession.turn_id`."""
    found = _TURN_ID.fullmatch(turn_id)
    if found is None:
        raise ValueError(f"turn id {turn_id!r} is none of a recorded session, such as run-001-t01")
    return found[1], int(found[2])


def recorded_path() -> Path:
    """Where the recording lies: AIRLINE_RECORDED, else beside the repository."""
    beside = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "tau2_airline.jsonl.gz"
    return Path(os.environ.get(_RECORDED) or beside)


def load_sessions(path: Path) -> list[RecordedSession]:
    """The sessions of a gzipped JSON-lines file, in its order."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [_session(number, json.loads(line)) for number, line in enumerate(lines, 1)]


def save_sessions(path: Path, sessions: Sequence[RecordedSession]) -> None:
    """Write sessions as `load_sessions` reads them; they are numbered anew."""
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        for session in sessions:
            lines.write(json.dumps(_line(session)) + "\n")


def _session(number: int, line: dict[str, Any]) -> RecordedSession:
    turns = tuple(RecordedTurn(turn["user"], tuple(_step(step) for step in turn["steps"])) for turn in line["turns"])
    return RecordedSession(f"run-{number:03}", line["run"], turns, line["expect"]["db_sha256"])


def _step(step: dict[str, Any]) -> RecordedStep:
    calls = tuple(RecordedCall(call["name"], call["arguments"], call["kind"]) for call in step["calls"])
    usage = step.get("usage") or {}
    return RecordedStep(step["text"] or "", calls, usage.get("in") or 0, usage.get("out") or 0)


def _line(session: RecordedSession) -> dict[str, Any]:
    return {
        "run": session.name,
        "expect": {"db_sha256": session.db_sha256},
        "turns": [
            {
                "user": turn.user,
                "steps": [
                    {
                        "text": step.text,
                        "calls": [
                            {"name": call.tool, "arguments": call.arguments, "kind": call.kind} for call in step.calls
                        ],
                        "usage": {"in": step.input_tokens, "out": step.output_tokens},
                    }
                    for step in turn.steps
                ],
            }
            for turn in session.turns
        ],
    }
