"""Producers and people: they submit turns, send input, cancel, decide approvals, and bring results from outside."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from brainq.app.wiring.wiring import Wiring
from brainq.client.waiting import cancel_turn
from brainq.contracts.people import TurnInput
from brainq.contracts.rows import AcceptedTurn
from brainq.contracts.turn import LimitsOverride, TurnRequest
from brainq.errors import BrainqError

if TYPE_CHECKING:
    from lab.simulate.world import World

EVERY_S = 0.12  # the average time between two submitted turns
DECIDE_EVERY_S = 2.0
TRIES = 12
BUSY = ("enqueue",) * 12 + ("interrupt", "replace", "steer", "reject", "merge")
TENANTS = ("acme:", "bolt:", "")


class People:
    """The producers and people of a world.

    accepted: the turns whose submit was answered.
    last_s: the time when the last turn was submitted.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._draw = Random(f"{world.seed} people")
        self.accepted: set[str] = set()
        self.last_s: float | None = None
        self._submitted = 0
        self._tokens: list[str] = []

    def begin(self) -> None:
        self._later(0.5, self._next)
        self._later(DECIDE_EVERY_S, self._decide)

    def take_token(self, token: str) -> None:
        """Receive the token of an outside call, whose result may come soon, late, twice or never."""
        roll = self._draw.random()
        if roll < 0.1:
            return
        after_s = self._draw.random() * (50.0 if roll < 0.2 else 10.0)
        for _ in range(2 if roll > 0.9 else 1):
            if roll < 0.25:
                self._do_later(after_s, "fail", lambda w: w.people.outside.fail(token, "no"))
            else:
                self._do_later(after_s, "complete", lambda w: w.people.outside.complete(token, {"said": "yes"}))

    def unfinished(self) -> list[str]:
        """Return the turns that have no result in SQL yet, or that still need work in Redis."""
        servers = self._world.servers
        open_ids = [row.turn_id for row in servers.store.turns.unended(0, 10_000)]
        if open_ids or self._submitted < self._world.turns:
            return open_ids or ["not all submitted"]
        return servers.client.now([("ZRANGE", servers.scripts.keys.index, 0, -1)])[0]

    def _next(self) -> None:
        self._submitted += 1
        self._submit(self._request(self._submitted))
        if self._submitted < self._world.turns:
            self._later(self._draw.expovariate(1 / EVERY_S), self._next)
        else:
            self.last_s = self._world.hub.now_s

    def _request(self, number: int) -> TurnRequest:
        draw, sessions = self._draw, max(4, self._world.turns // 3)
        roll, on_busy = draw.random(), draw.choice(BUSY)
        limits = LimitsOverride(
            timeout_s=draw.choice((4.0, 20.0, 40.0, 60.0)),
            max_steps=draw.choice((1, 2, 4, 5, 5)),
            max_tool_calls=draw.choice((None, None, 1, 3)),
            max_wait_s=30.0 if roll < 0.1 else None,
        )
        return TurnRequest(
            turn_id=f"turn-{number}",
            session_id=f"{draw.choice(TENANTS)}s{draw.randint(1, sessions)}",
            user_message=f"do {number}",
            request_key=f"turn-{number}",
            limits=limits,
            on_busy=on_busy,
            priority=draw.choice(("high", "normal", "normal", "low")),
            # A turn that became the input of another one would hold that one for an hour.
            readiness=False if draw.random() < 0.03 and on_busy == "enqueue" else None,
        )

    def _submit(self, request: TurnRequest) -> None:
        sid, tid = request.session_id, request.turn_id
        self._do_later(0.0, f"submit {tid}", lambda w: self._accept(w, request))
        if self._draw.random() < 0.06:  # it may come before the turn is in Redis
            self._do_later(self._draw.random() * 15.0, f"cancel {tid}", lambda w: cancel_turn(w, sid, tid, "enough"))

    def _accept(self, wiring: Wiring, request: TurnRequest) -> AcceptedTurn:
        accepted = wiring.people.intake.submit(request)
        is_new = accepted.turn_id not in self.accepted
        self.accepted.add(accepted.turn_id)
        if is_new and (request.readiness is False or self._draw.random() < 0.12):
            self._steer_later(accepted, request)
        return accepted

    def _steer_later(self, accepted: AcceptedTurn, request: TurnRequest) -> None:
        sid, tid = accepted.session_id, accepted.turn_id
        ready = True if request.readiness is False else None
        item = TurnInput(client_message_id=f"i-{tid}", text=f"and {tid}", readiness=ready)
        after_s = 0.05 + self._draw.random() * 8.0
        self._do_later(after_s, f"steer {tid}", lambda w: w.people.inputs.send(sid, tid, item))

    def _decide(self) -> None:
        """Decide some of the pending approvals."""
        roll = self._draw.random

        def look(wiring: Wiring) -> None:
            for approval in wiring.people.approvals.list(state="pending"):
                word = roll()
                if word < 0.25:
                    wiring.people.approvals.approve(approval.id)
                elif word < 0.32:
                    wiring.people.approvals.deny(approval.id, reason="no")

        self._do_later(0.0, "decide", look)
        if not self._world.is_over:
            self._later(DECIDE_EVERY_S, self._decide)

    def _later(self, after_s: float, act: Callable[[], None]) -> None:
        self._world.hub.after(after_s, act)

    def _do_later(self, after_s: float, what: str, verb: Callable[[Wiring], Any], tries: int = TRIES) -> None:
        """Call a verb in the front's process later. Repeat it if the process died or could not reach a server."""

        def begin() -> None:
            fronts = [p for p in self._world.processes if p.kind == "front" and not p.is_dead]
            if not fronts:
                self._do_later(1.0, what, verb, tries)
                return
            front = fronts[0]
            has_begun: list[bool] = []

            def body() -> None:
                has_begun.append(True)
                did, is_done = "not heard of", False
                try:
                    did, is_done = type(verb(front.wiring)).__name__, True
                except BrainqError as refused:
                    did, is_done = type(refused).__name__, True
                finally:
                    self._world.note(front.name, what, did)
                    if not is_done and tries > 1 and not self._world.is_over:
                        self._do_later(1.0, what, verb, tries - 1)

            def look() -> None:
                if front.is_dead and not has_begun:
                    begin()

            self._world.hub.spawn(what, front, body)
            self._later(1.0, look)

        self._later(after_s, begin)
