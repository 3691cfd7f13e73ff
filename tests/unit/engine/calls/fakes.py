"""A CallRunner whose Redis and SQL are lists of what was asked of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from brainq.contracts.call import CallReport, ChildTurn, Progress, ToolOutcome
from brainq.contracts.claim import CallClaim, CallRef, NoCallClaim, NoClaim, SettleReply
from brainq.contracts.file import FileLimits
from brainq.contracts.rows import VoidResult
from brainq.contracts.status import Effect, TraceStatus
from brainq.engine.brain.brain import Brain
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.calls.function_run import Abandon
from brainq.engine.calls.run import CallRunner
from brainq.engine.calls.settle import ResultFiles
from brainq.runtime.leases import LeaseRenewer
from tests.support.blobs import BlobsInMemory
from tests.support.only import only
from tests.support.stand_in import stand_in

REF = CallRef("s", "turn-1", "c1-0")


class Calls:
    """Stands for `adapters.redis.calls.RedisCalls`."""

    def __init__(self, log: list[str]) -> None:
        self.log = log
        self.claimed: CallClaim | NoCallClaim = NoClaim("gone")
        self.on_claim: Callable[[], None] = lambda: None
        self.on_settle: Callable[[], None] = lambda: None
        self.word = "OK"
        self.replies: dict[str, SettleReply] = {}
        self.settled: list[CallReport] = []
        self.parked: list[SimpleNamespace] = []
        self.progress: list[tuple[int, Progress]] = []
        self.fails: Exception | None = None
        self.lane_beats = 0
        self.lapsed: list[CallClaim] = []

    def claim(self, ref: CallRef, attempt: int, owner: str) -> CallClaim | NoCallClaim:
        self.on_claim()
        return self.claimed

    def beat(self, claim: CallClaim) -> str:
        return self.word

    def beat_lanes(self, ref: CallRef) -> str:
        self.lane_beats += 1
        return "OK"

    def let_lapse(self, claim: CallClaim) -> None:
        self.lapsed.append(claim)

    def publish_progress(self, claim: CallClaim, number: int, progress: Progress) -> None:
        if self.fails is not None:
            raise self.fails
        self.progress.append((number, progress))

    def start(self, claim: CallClaim) -> str:
        return self.word

    def budget(self, claim: CallClaim) -> Any:
        return None

    def give_token(self, claim: CallClaim, token: str) -> str:
        return token

    def settle(
        self, claim: CallClaim, report: CallReport, *, still_runs: bool = False, offer: object = None
    ) -> SettleReply:
        self.on_settle()
        self.settled.append(report)
        self.log.append(f"settle {report.status}{' still runs' if still_runs else ''}")
        return self.replies.get("settle", SettleReply("SETTLED"))

    def park(self, claim: CallClaim, **fields: Any) -> SettleReply:
        self.parked.append(SimpleNamespace(**fields))
        self.log.append(f"park {fields['park']}")
        return self.replies.get("park", SettleReply("PARKED"))


class Intents:
    """Stands for `store.calls`."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.outcomes: list[tuple[ToolOutcome, bool]] = []
        self.known: VoidResult | None = None  # of a row that was there before

    def start(self, *, unless_braked: bool = False, **intent: Any) -> bool:
        self.started.append(intent["call_id"])
        self.rows.append(intent)
        return self.known is None

    def void(self, **_: Any) -> VoidResult:
        assert self.known is not None
        return self.known

    def record_outcome(self, turn_id: str, call_id: str, attempt: int, outcome: ToolOutcome, late: bool) -> bool:
        self.outcomes.append((outcome, late))
        return True


class Stops:
    """Stands for `adapters.redis.stops.RedisStops`: a test publishes."""

    def __init__(self) -> None:
        self.watching: list[tuple[str, str, Callable[[str], None]]] = []

    @contextmanager
    def watch(self, session_id: str, turn_id: str, callback: Callable[[str], None]) -> Generator[None]:
        watcher = (session_id, turn_id, callback)
        self.watching.append(watcher)
        yield
        self.watching.remove(watcher)

    def publish(self, session_id: str = REF.session_id, turn_id: str = REF.turn_id) -> None:
        for session, turn, callback in list(self.watching):
            if (session, turn) == (session_id, turn_id):
                callback("cancelled")


class Outside:
    def __init__(self) -> None:
        self.tokens: dict[str, tuple[CallRef, float]] = {}

    def register(self, token: str, ref: CallRef, keep_s: float) -> bool:
        return self.tokens.setdefault(token, (ref, keep_s))[0] == ref


class Children:
    def __init__(self) -> None:
        self.answer: tuple[str, str] | Exception = ("STARTED", "child-1")
        self.started: list[ChildTurn] = []
        self.stopped: list[str] = []

    def start(self, claim: CallClaim, child: ChildTurn) -> tuple[str, str]:
        self.started.append(child)
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def cancel_children(self, turn_ids: Sequence[str]) -> None:
        self.stopped.extend(turn_ids)


class Holds:
    def __init__(self) -> None:
        self.ready = False

    def is_ready(self, session_id: str, turn_id: str) -> bool:
        return self.ready and (session_id, turn_id) == (REF.session_id, REF.turn_id)


@dataclass(slots=True)
class Rig:
    """One worker. `log` is what was done, in order."""

    brain: Brain
    executor: BoundedToolExecutor
    log: list[str] = field(default_factory=list[str])
    stops: Stops = field(default_factory=Stops)
    intents: Intents = field(default_factory=Intents)
    outside: Outside | None = field(default_factory=Outside)
    children: Children | None = field(default_factory=Children)
    holds: Holds = field(default_factory=Holds)
    beats: LeaseRenewer = field(default_factory=lambda: LeaseRenewer(600.0))
    limits: FileLimits = field(default_factory=lambda: FileLimits(one=1_000, message=1_500))
    blobs: BlobsInMemory = field(default_factory=BlobsInMemory)
    calls: Calls = field(init=False)

    def __post_init__(self) -> None:
        self.calls = Calls(self.log)

    def claim(self, tool: str, effect: Effect = Effect.READ_ONLY, **fields: Any) -> CallClaim:
        """Have the next doorbell claim a call of `tool`; one that is no read has a lane."""
        values: dict[str, Any] = {
            "arguments": {},
            "cap_ms": 60_000,
            "remaining_ms": 60_000,
            "attempt": 1,
            "lanes": () if effect.is_read else ("session:s",),
            **fields,
        }
        claim = CallClaim(
            session_id=REF.session_id,
            turn_id=REF.turn_id,
            call_id=REF.call_id,
            owner="1@worker",
            tool=tool,
            effect=effect,
            step=1,
            args_hash="hash",
            **values,
        )
        self.calls.claimed = claim
        return claim

    def run(self, abandon: Abandon | None = None) -> str:
        runner = CallRunner(
            owner="worker",
            brains=only(self.brain),
            calls=stand_in(self.calls),
            intents=stand_in(self.intents),
            beats=self.beats,
            executor=self.executor,
            stops=stand_in(self.stops),
            holds=stand_in(self.holds),
            outside=stand_in(self.outside),
            children=stand_in(self.children),
            files=ResultFiles(self.blobs, self.limits),
        )
        return runner.run(REF.session_id, REF.turn_id, REF.call_id, 1, abandon)

    @property
    def status(self) -> TraceStatus:
        """Of the one call that was settled."""
        [settled] = self.calls.settled
        return settled.status

    @property
    def said(self) -> str:
        """What the model reads of it."""
        [settled] = self.calls.settled
        return settled.message.content
