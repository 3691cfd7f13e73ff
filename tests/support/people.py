"""A watched model, a brain of plain tools, and the observable state of turns that people act on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

from brainq.client.handle import TurnHandle
from brainq.contracts.event import TurnEvent
from brainq.contracts.message import Message
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.models.scripted import Rules, ScriptedProvider, says
from brainq.engine.tools.tool import ApprovalRule
from tests.support.pump import Bell, Pump
from tests.support.wait import wait_until

Pumps = Callable[..., Pump]
Happens = Callable[[], object]


class Watched(ScriptedProvider):
    """A provider that follows a script in the turn that it sees first. Each later turn gets `later`.

    requests: its requests, in order.
    meanwhile: maps a step to an act that happens once while the provider answers that step of the first turn.
    """

    def __init__(self, *script: ModelReply, later: str = "later", auxiliary: Rules | None = None) -> None:
        super().__init__(rules=self._follow, auxiliary=auxiliary)
        self.script = script
        self.requests: list[ModelRequest] = []
        self.meanwhile: dict[int, Happens] = {}
        self._later = later
        self._first = ""

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        self.requests.append(request)
        self._first = self._first or request.turn_id
        if request.turn_id == self._first and request.step in self.meanwhile:
            self.meanwhile.pop(request.step)()
        return super().generate_stream(request)

    def shown(self, step: int, turn_id: str = "") -> list[tuple[str, str]]:
        """Return (role, text) of the messages of the last request for a step, without system messages."""
        turn_id = turn_id or self._first
        asked = [r for r in self.requests if (r.turn_id, r.step) == (turn_id, step)]
        return [(m.role, m.content) for m in asked[-1].messages if m.role != "system"]

    def results(self, step: int) -> list[str]:
        """Return the texts of the tool messages that the model was shown at a step."""
        return [text for role, text in self.shown(step) if role == "tool"]

    def _follow(self, request: ModelRequest) -> ModelReply:
        if request.turn_id != self._first:
            return says(self._later)
        return self.script[min(request.step, len(self.script)) - 1]


def brain_of(model: Any, ran: list[str] | None = None, *, approval: ApprovalRule = None, **options: Any) -> Brain:
    """Return a brain with tools that only record in `ran` that they ran: `look x`, `write x`, `note x`."""
    brain = Brain("people", model, "Help.", **options)
    done: list[str] = [] if ran is None else ran

    @brain.tool(effect=Effect.READ_ONLY)
    def look(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look."""
        done.append(f"look {name}")
        return f"saw {name}"

    @brain.tool(effect=Effect.LOCAL_WRITE, approval=approval, deny_repeats=True)
    def write(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write."""
        done.append(f"write {name}")
        return f"wrote {name}"

    @brain.tool(effect=Effect.LOCAL_WRITE, resources=("note:{name}",), approval=False)
    def note(name: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Write a note, which no two sessions do at once."""
        done.append(f"note {name}")
        return f"noted {name}"

    return brain


def statuses(pump: Pump, handle: TurnHandle) -> dict[str, str]:
    """Return the status of each call, by its id."""
    trace = pump.wiring.state.calls.trace(handle.session_id, handle.turn_id)
    return {entry.call_id: entry.status.value for entry in trace}


def awaits(handle: TurnHandle) -> str:
    """Return the turn's state, and whom it waits for: `parked people`."""
    snapshot = handle.snapshot()
    assert snapshot is not None
    return f"{snapshot.state} {snapshot.awaits}"


def history(pump: Pump, session_id: str = "s1") -> list[Message]:
    """Return the session's conversation as Redis keeps it."""
    client: Any = pump.wiring.state.redis
    kept = client.lrange(pump.wiring.state.keys.of_session(session_id, "history"), 0, -1)
    return [Message.model_validate_json(item) for item in kept]


def events(handle: TurnHandle, kind: str = "") -> list[TurnEvent]:
    """Return all events of a turn that is over, or those of one kind."""
    return [event for event in handle.events(timeout_s=60) if kind in ("", event.kind)]


def turn_field(pump: Pump, handle: TurnHandle, name: str) -> str:
    client: Any = pump.wiring.state.redis
    return client.hget(pump.wiring.state.keys.turn(handle.session_id, handle.turn_id), name) or ""


def time_is_up(pump: Pump, handle: TurnHandle) -> None:
    """End every wait of the turn, so that no test has to wait for it."""
    client: Any = pump.wiring.state.redis
    turn = pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)
    held = json.loads(client.hget(turn, "holds") or "{}")
    if held:
        client.hset(turn, "holds", json.dumps({name: hold | {"ends": 1} for name, hold in held.items()}))
    for field in client.hkeys(turn + ":trace"):
        if field.endswith((":park_ends", ":ask_ends")):
            client.hset(turn + ":trace", field, 1)


def parked_since(pump: Pump, handle: TurnHandle, ago_s: float) -> None:
    """Date the beginning of the turn's park back by `ago_s`, while its deadline stands still."""
    client: Any = pump.wiring.state.redis
    turn = pump.wiring.state.keys.turn(handle.session_id, handle.turn_id)
    client.hincrby(turn, "parked_at", -int(ago_s * 1000))
    client.hincrby(turn + ":budget", "deadline", -int(ago_s * 1000))


def lose_redis(pump: Pump) -> None:
    """Empty Redis, and let the sweeper compare it with SQL."""
    client: Any = pump.wiring.state.redis
    client.flushall()
    assert pump.wiring.sweeper.checks.lost_turns.compare(0).healed


def heal_inputs(pump: Pump, monkeypatch: Any) -> None:
    """Let the sweeper handle input that has been incomplete for a while."""
    monkeypatch.setattr("brainq.engine.people.inputs.SETTLING_S", -1.0)
    pump.wiring.people.inputs.heal(0)


def take_call(pump: Pump) -> Bell:
    """Take the doorbell of the only call that was rung for, without answering it."""
    (bell,) = pump.waiting()
    assert pump.take() == bell
    return bell


@contextmanager
def working(pump: Pump) -> Generator[threading.Thread]:
    """Let another worker drain the queues in the context. It is waited for at the end."""
    thread = threading.Thread(target=pump.drain)
    thread.start()
    yield thread
    thread.join(60)
    assert not thread.is_alive(), "a call did not end"


def swept_until(pump: Pump, is_so: Callable[[], object], why: str) -> None:
    """Sweep until `is_so` holds."""

    def look() -> object:
        pump.sweep()
        return is_so()

    wait_until(look, why)
