"""The acts of people and other programs on the turns of a schedule, and the times that run out on them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, cast

from brainq.contracts.claim import CallRef
from brainq.contracts.people import EditedCall, HoldPolicy, HoldSpec, TurnInput
from brainq.errors import BrainqError
from tests.support.model.known import Known

if TYPE_CHECKING:
    from tests.support.model.schedule import Schedule

LIVE = ("queued", "active", "parked")
MOST_INPUTS = 3
DECISIONS: tuple[Literal["approved", "denied"], ...] = ("approved", "approved", "denied")
POLICIES: tuple[HoldPolicy, ...] = ("deny", "release", "cancel")


class People:
    """The verbs of one schedule. `weighted` has how often each is drawn."""

    def __init__(self, schedule: Schedule) -> None:
        self._at = schedule
        self._rng = schedule.rng
        self._numbers: dict[str, int] = {}
        self.weighted: list[tuple[int, Callable[[], None]]] = [
            (5, self._steer),
            (3, self._hold),
            (3, self._release),
            (1, self._add_flag),
            (1, self._release_flag),
            (8, self._decide),
            (8, self._complete),
            (2, self._cancel),
            (1, self._pause),
            (2, self._resume),
            (2, self._end_hold),
            (2, self._end_ask),
            (2, self._end_park),
        ]
        self._weights = [weight for weight, _ in self.weighted]
        self._acts = [act for _, act in self.weighted]

    def act(self) -> None:
        """Perform one verb, or let one time run out."""
        self._rng.choices(self._acts, self._weights)[0]()

    # What they do.

    def _steer(self) -> None:
        known = self._at.some_turn(*LIVE, *LIVE, "closing")
        if known is None:
            return
        rng = self._rng
        sent = self._numbers.get("m", 0)
        again = sent > 0 and (sent >= MOST_INPUTS or rng.random() < 0.2)
        message_id = f"m{rng.randint(1, sent)}" if again else self._new("m")
        item = TurnInput(
            client_message_id=message_id,
            text="" if rng.random() < 0.1 else "more",
            readiness=rng.choice((None, None, None, True, False)),
            merged=rng.random() < 0.1,
        )
        expected = rng.choice((None, None, known.turn_id))
        self._do(
            f"steer {known.turn_id} {message_id}",
            lambda process: process.desk.send(known.session_id, known.turn_id, item, expected_turn_id=expected),
        )

    def _hold(self) -> None:
        if known := self._at.some_turn(*LIVE):
            hold = HoldSpec(id=self._new("h"), timeout_s=3600.0, on_timeout=self._rng.choice(POLICIES))
            holds = self._at.ports.holds
            self._do(f"hold {known.turn_id}", lambda _: holds.place(known.session_id, known.turn_id, hold))

    def _release(self) -> None:
        held = [known for known in self._at.rules.turns.values() if known.holds]
        if held:
            known = self._rng.choice(held)
            self.release(known, self._rng.choice(sorted(known.standing())))

    def release(self, known: Known, hold_id: str) -> None:
        self._do(f"release {known.turn_id} {hold_id}", lambda _: self._released(known, hold_id))

    def _released(self, known: Known, hold_id: str) -> None:
        self._at.ports.holds.release(known.session_id, known.turn_id, hold_id)

    def _add_flag(self) -> None:
        session = self._at.some_session()
        flag = HoldSpec(id=self._new("f"), timeout_s=3600.0, on_timeout=self._rng.choice(POLICIES))
        self._do(f"flag {session}", lambda _: self._at.ports.holds.add_flag(session, flag))

    def _release_flag(self) -> None:
        if count := self._numbers.get("f", 0):
            session, flag = self._at.some_session(), f"f{self._rng.randint(1, count)}"
            self._do(f"ready {session} {flag}", lambda _: self._flag_released(session, flag))

    def _flag_released(self, session: str, flag: str) -> None:
        word, turn_id = self._at.ports.holds.release_flag(session, flag)
        if word == "TAKEN":
            self._released(self._at.rules.of(session, turn_id), flag)

    def _decide(self) -> None:
        asked = [
            (known, call)
            for known in self._at.rules.turns.values()
            for call in known.calls_that("", ask=self._rng.choice(("pending", "pending", "pending", "approved")))
        ]
        if asked:
            self.decide(*self._rng.choice(asked))

    def decide(self, known: Known, call: str) -> None:
        rng = self._rng
        ref = CallRef(known.session_id, known.turn_id, call)
        decision = rng.choice(DECISIONS)
        seen = rng.choice(("h", "h", "h", "other"))
        edited = self._edited(ref) if decision == "approved" and rng.random() < 0.3 else None
        self._do(f"{decision} {ref.holder}", lambda _: self._decided(ref, decision, seen, edited))

    def _decided(
        self, ref: CallRef, decision: Literal["approved", "denied"], seen: str, edited: EditedCall | None
    ) -> None:
        ports = self._at.ports
        ports.holds.decide_approval(ref, args_hash=seen, decision=decision, by="ann", why="so", edited=edited)

    def _edited(self, ref: CallRef) -> EditedCall | None:
        """Return the call with other arguments, which may need other lanes."""
        spec = self._read("HGET", self._at.keys.turn(ref.session_id, ref.turn_id) + ":trace", f"{ref.call_id}:spec")
        if not spec:
            return None
        arguments = json.loads(spec)["arguments"]
        lanes = self._rng.choice((("A",), ("B",))) if arguments["write"] else ()
        other = {"arguments": {**arguments, "lanes": lanes, "hash": "e"}, "hash": "e", "lanes": lanes}
        return EditedCall(json.dumps({**other, "edited": True}), "e", "", lanes)

    def _complete(self) -> None:
        if tokens := self._at.functions.tokens:
            self.complete(self._rng.choice(tokens[-2:]))

    def answer_at_once(self, token: str) -> None:
        """Complete a call at once, faster than the function that requested it returns."""
        if self._rng.random() < 0.3:
            self.complete(token)

    def complete(self, token: str) -> None:
        roll = self._rng.random()
        self._do(
            f"complete {token[-6:]}",
            lambda process: (
                process.outside.complete(token, "from outside")
                if roll < 0.7
                else process.outside.fail(token, "it failed outside")
            ),
        )

    def _cancel(self) -> None:
        if known := self._at.some_turn("active", "parked"):
            self._at.cancel(known)

    def _pause(self) -> None:
        session = self._at.some_session()
        self._do(f"pause {session}", lambda _: self._at.ports.sessions.pause(session))

    def _resume(self) -> None:
        session = self._at.some_session()
        self.resume(session)

    def resume(self, session: str) -> None:
        self._do(f"resume {session}", lambda _: self._at.ports.sessions.resume(session))

    # What runs out.

    def _end_hold(self) -> None:
        held = [(key, known) for key, known in self._at.rules.turns.items() if known.holds and known.state in LIVE]
        if held:
            key, known = self._rng.choice(held)
            holds = json.loads(cast(str, self._read("HGET", key, "holds")) or "{}")
            if holds:
                ended = self._rng.choice(sorted(holds))
                holds[ended]["ends"] = self._at.now_ms - 1
                self._at.log.append(("the time is up of hold", known.turn_id, ended))
                known.holds = json.dumps(holds)
                self._read("HSET", key, "holds", known.holds)
                self.end_parks(key, known, "hold")

    def _end_ask(self) -> None:
        asked = [
            (key, known, call)
            for key, known in self._at.rules.turns.items()
            for call in known.calls_that("", ask="pending")
        ]
        if asked:
            key, known, call = self._rng.choice(asked)
            self.end_ask(key, known, call)

    def end_ask(self, key: str, known: Known, call: str) -> None:
        over = self._at.now_ms - 1
        self._at.log.append(("nobody decided in time on", known.turn_id, call))
        self._read("HSET", key + ":trace", call + ":ask_ends", over)
        if call in known.calls_that("parked", park="approval"):
            self._read("HSET", key + ":trace", call + ":park_ends", over)

    def _end_park(self) -> None:
        parked = [
            (key, known) for key, known in self._at.rules.turns.items() if known.calls_that("parked", park="outside")
        ]
        if parked:
            self.end_parks(*self._rng.choice(parked), "outside")

    def end_parks(self, key: str, known: Known, park: str) -> None:
        for call in known.calls_that("parked", park=park):
            self._at.log.append(("the time is up of", park, known.turn_id, call))
            self._read("HSET", key + ":trace", call + ":park_ends", self._at.now_ms - 1)

    # When all is to come to its end.

    def go_home(self) -> None:
        """End all waits for people."""
        for session in sorted(self._at.rules.paused):
            self.resume(session)
        for key, known in list(self._at.rules.turns.items()):
            if known.state not in LIVE:
                continue
            for hold_id in sorted(known.standing()):
                self.release(known, hold_id)
            for call in known.calls_that("", ask="pending"):
                self.end_ask(key, known, call)
            self.end_parks(key, known, "outside")

    def _new(self, letter: str) -> str:
        self._numbers[letter] = self._numbers.get(letter, 0) + 1
        return f"{letter}{self._numbers[letter]}"

    def _read(self, *command: Any) -> Any:
        return self._at.client.many([command])[0]

    def _do(self, label: str, act: Callable[[Any], object]) -> None:
        process = self._rng.choice(self._at.processes)

        def done() -> None:
            try:
                act(process)
            except BrainqError as refusal:
                self._at.log.append((label, "was refused", type(refusal).__name__))

        self._at.spawn(label, process, done)
