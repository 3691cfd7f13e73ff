"""Two sides that act at the same moment, again and again, and the remains of a turn that they raced about."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from brainq.client.handle import TurnHandle
from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, TraceStatus
from brainq.engine.brain.brain import Brain
from tests.support.pump import Pump, sqlite_url

T = TypeVar("T")
Line = Callable[[], None]
Side = Callable[[Line], T]

STEP_S = 0.0001
SPREAD_S = 0.0003
TOO_LONG_S = 30.0

# Nothing lapses because a machine is busy: what ends here is ended by one of the two sides.
PATIENT: dict[str, Any] = {"lease_s": 20.0, "beat_s": 5.0, "sweep_s": 1.0, "rering_s": 20.0}


class Duel:
    """Two sides that run in separate threads, and their score.

    A side prepares itself, calls the `line` that it is given, and acts. No side passes the line before both have
    reached it. The winner gets a shorter head start the next time, so that the two meet where either may come first.
    """

    def __init__(self, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._head_start_s = 0.0
        self.wins: Counter[str] = Counter()

    def run(self, left: Side[Any], right: Side[Any]) -> tuple[Any, Any]:
        """Return the results of both sides. Raises what a side raised."""
        barrier = threading.Barrier(2, timeout=TOO_LONG_S)
        left_waits_s = self._random.gauss(self._head_start_s, SPREAD_S)
        sides = (_Sided(left, barrier, left_waits_s), _Sided(right, barrier, -left_waits_s))
        threads = [threading.Thread(target=side.run, daemon=True) for side in sides]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(TOO_LONG_S * 2)
            assert not thread.is_alive(), "a side did not end"
        failures = [side.failure for side in sides if side.failure is not None]
        # What went wrong comes before that the other side waited in vain.
        for failure in sorted(failures, key=lambda failure: isinstance(failure, threading.BrokenBarrierError)):
            raise failure
        return sides[0].answer, sides[1].answer

    def won(self, who: str, *, left: bool) -> None:
        """Count which side came first, by name."""
        self.wins[who] += 1
        self._head_start_s += STEP_S if left else -STEP_S


class _Sided(Generic[T]):
    """One side of one run."""

    def __init__(self, side: Side[T], barrier: threading.Barrier, waits_s: float) -> None:
        self._side = side
        self._barrier = barrier
        self._waits_s = waits_s
        self.answer: T | None = None
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            self.answer = self._side(self._line)
        except BaseException as failure:
            self.failure = failure
            self._barrier.abort()

    def _line(self) -> None:
        self._barrier.wait()
        if self._waits_s > 0:
            threading.Event().wait(self._waits_s)


@dataclass(frozen=True, slots=True)
class Left:
    """The remains of a turn that is over."""

    ending: Ending
    trace: dict[str, TraceStatus]
    messages: tuple[Message, ...]
    events: tuple[TurnEvent, ...]

    @property
    def tool_texts(self) -> list[str]:
        return [message.content for message in self.messages if message.role == "tool"]

    def told(self, kind: EventKind) -> list[TurnEvent]:
        return [event for event in self.events if event.kind is kind]


class Arena:
    """The machines of one process that drive a turn to a race and away from it, and two racers with their own
    connections.

    All use one Redis and one database.
    """

    def __init__(self, brain: Brain, redis_url: str, directory: Path, **settings: Any) -> None:
        sql_url = sqlite_url(directory)
        pumps = [
            Pump(brain, redis_url, sql_url, owner=owner, **{**PATIENT, **settings})
            for owner in ("pump", "left", "right")
        ]
        self.pump, self.left, self.right = pumps
        self._pumps = pumps

    def close(self) -> None:
        for pump in self._pumps:
            pump.close()

    def until_parked(self, session_id: str) -> TurnHandle:
        """Return a new turn, driven to where it waits for somebody."""
        handle = self.pump.submit(session_id, "Go.")
        self.pump.drain()
        snapshot = handle.snapshot()
        assert snapshot is not None
        assert snapshot.state == "parked", f"the turn is {snapshot.state}"
        return handle

    def finish(self, handle: TurnHandle) -> Left:
        """Drive a turn to the end of its chain, and fail unless all records of it agree.

        Its events have no gaps, one closing and one result. Each call ended once, has one message in the session's
        history and one in SQL, and the same status in Redis and SQL.
        """
        self.pump.settle(handle)
        store, sid, tid = self.pump.wiring.store, handle.session_id, handle.turn_id
        events = tuple(handle.events(timeout_s=60))
        assert [event.seq for event in events] == list(range(1, len(events) + 1))
        kinds = Counter(event.kind for event in events)
        assert (kinds[EventKind.TURN_CLOSING], kinds[EventKind.RESULT]) == (1, 1)

        trace = {entry.call_id: entry.status for entry in self.pump.wiring.state.calls.trace(sid, tid)}
        kept = {entry.call_id: entry.status for entry in store.traces.of_turn(tid)}
        assert kept == trace
        assert all(status.is_settled for status in trace.values()), trace
        ended = Counter(event.data["call"] for event in events if event.kind is EventKind.CALL_ENDED)
        assert ended == dict.fromkeys(trace, 1)

        in_history = self.history(sid)
        in_sql = store.transcripts.of_turn(tid)
        for messages in (in_history, in_sql):
            answered = Counter(message.call_id for message in messages if message.role == "tool")
            assert answered == dict.fromkeys(trace, 1)

        result = handle.result(timeout_s=1)
        row = store.turns.result(tid)
        assert row is not None
        (closing,) = [event for event in events if event.kind is EventKind.TURN_CLOSING]
        assert closing.data["ending"] == result.ending == row.ending
        return Left(result.ending, trace, in_sql, events)

    def history(self, session_id: str) -> list[Message]:
        """Return the session's conversation as Redis keeps it."""
        return self._messages(session_id, "history")

    def notices(self, session_id: str) -> list[Message]:
        """Return the notices for the session's next turn."""
        return self._messages(session_id, "notices")

    def _messages(self, session_id: str, part: str) -> list[Message]:
        client: Any = self.pump.wiring.state.redis
        kept = client.lrange(self.pump.wiring.state.keys.of_session(session_id, part), 0, -1)
        return [Message.model_validate_json(item) for item in kept]
