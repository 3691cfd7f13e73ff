"""Waiting for the acts of a turn of the people's brain."""

from __future__ import annotations

import json
from typing import Any

from brainq.client.handle import TurnHandle
from brainq.contracts.status import TurnState
from tests.support.brains.diary import notes
from tests.support.wait import wait_until


def asked(turn: TurnHandle, step: int = 1, attempt: int = 1) -> dict[str, Any]:
    """Return the diary's line of the model's request for a step."""
    turn_id = turn.turn_id
    return wait_until(
        lambda: notes("thinking", turn=turn_id, step=step, attempt=attempt), f"the model was asked for {step}"
    )[0]


def heard(turn: TurnHandle | str) -> list[list[str]]:
    """Return the inputs that the model was shown in each request of the turn."""
    turn_id = turn if isinstance(turn, str) else turn.turn_id
    return [row["inputs"] for row in notes("thinking", turn=turn_id)]


def started(turn: TurnHandle, **facts: Any) -> dict[str, Any]:
    """Return the newest line of a tool that began."""
    return wait_until(lambda: notes("start", turn=turn.turn_id, **facts), "the tool started")[-1]


def at_place(turn: TurnHandle | str, place: str) -> dict[str, Any]:
    """Return the line of a worker that waits at a place, such as `commit.after`."""
    turn_id = turn if isinstance(turn, str) else turn.turn_id
    return wait_until(lambda: notes(place, turn=turn_id), f"a worker is at {place}")[0]


def token_of(turn: TurnHandle, name: str) -> str:
    """Return the token of a pending call."""
    return wait_until(lambda: notes("token", turn=turn.turn_id, name=name), "there is a token")[-1]["token"]


def parked(turn: TurnHandle, awaits: str = "people") -> None:
    """Wait until the turn is parked."""

    def is_parked() -> bool:
        seen = turn.snapshot()
        return seen is not None and seen.state is TurnState.PARKED and seen.awaits == awaits

    wait_until(is_parked, f"{turn.turn_id} is parked, and waits for {awaits}")


def tool_texts(text: str) -> list[str]:
    """Return the tools' messages in a final text of `$seen`."""
    return [row["text"] for row in json.loads(text) if row["role"] == "tool"]
