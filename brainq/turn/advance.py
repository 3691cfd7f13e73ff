"""Coordinator.advance: claim a turn, decide, act, exit."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from brainq.beats import Beats
from brainq.by_brain import ByBrain
from brainq.contracts.claim import Dropped, TurnClaim
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.observe.metrics import catalogue as m
from brainq.observe.metrics.counters import COUNTERS
from brainq.observe.missing_brain import MissingBrain, not_served
from brainq.ports.brakes import Brakes
from brainq.ports.stops import Stops
from brainq.ports.turns import Turns
from brainq.providers.places import PlaceLater, Taking
from brainq.turn.brain_turns import BrainTurns
from brainq.turn.decide import NOTHING_TO_COMPACT, Compact, End, Reflect, Think, Wait, decide
from brainq.turn.ending import Ender
from brainq.turn.facts import facts_of
from brainq.turn.faults import end_of_fault
from brainq.turn.line import asker_of, left_line
from brainq.turn.outcome import Answer, Calls, RungAgain, StepOutcome
from brainq.turn.patience import AT_ONCE, Patience, Trying
from brainq.turn.post_hooks import call_due_hooks
from brainq.turn.think import Thinker

log = logger("brainq.turn")

LOOKS_S = 60.0  # a turn that waits longer for a place looks in between whether it comes sooner
EARLY_S = 1.0  # before its place comes a turn is rung; the rest of the wait is slept
ANY = 1_000_000  # however often it lost its worker


@dataclass(slots=True)
class Ownership:
    """Whether the turn is still ours, as the beating thread last heard."""

    word: str = ""

    def lost(self) -> bool:
        return bool(self.word)

    def hear(self, word: str) -> None:
        self.word = word


class Coordinator:
    """Advances turns. Holds no state of its own: any process may advance any turn.

    alone   advances turns that lost their worker again and again, each in a process where nothing else runs.
            None: this is such a process
    taking     how its model calls take their places where their services are limited
    patience   how Redis or SQL is waited for while a turn is worked on
    """

    def __init__(
        self,
        *,
        owner: str,
        brains: ByBrain[BrainTurns],
        turns: Turns,
        beats: Beats,
        stops: Stops,
        ender: Ender,
        brakes: Brakes,
        is_away: Callable[[Exception], bool],
        taking: Taking,
        alone: Callable[[str, str, int], str] | None = None,
        patience: Patience = AT_ONCE,
    ) -> None:
        """`is_away` says of an exception whether it comes from a server that cannot be reached."""
        self._owner = owner
        self._numbers = itertools.count(1)
        self._brains = brains
        self._turns = turns
        self._missing = MissingBrain()
        self._beats = beats
        self._stops = stops
        self._ender = ender
        self._taking = taking
        self._alone = alone
        self._is_away = is_away
        self._brakes = brakes
        self._patience = patience

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests."""
        # Each claim signs as an owner of its own: after a loss of Redis' data fences begin again, and a thread
        # from before must not be taken for the new owner because it runs in the same process.
        owner = f"{next(self._numbers)}@{self._owner}"
        ownership = Ownership()
        # Watched before it is claimed: a cancel is in what is read with the claim, or heard.
        with self._stops.watch(session_id, turn_id, ownership.hear):
            return self._answer(session_id, turn_id, fence, owner, ownership)

    def _answer(self, session_id: str, turn_id: str, fence: int, owner: str, ownership: Ownership) -> str:
        if self._alone is None:
            claim = self._turns.claim(session_id, turn_id, fence, owner, ANY)
        else:
            claim = self._turns.claim(session_id, turn_id, fence, owner)
            if isinstance(claim, Dropped) and claim.why == "suspect":
                return self._alone(session_id, turn_id, fence)
        if isinstance(claim, Dropped):
            if claim.why == "no_brain":
                self._missing.say("turn", turn_id, self._brains.names)
            log.debug("doorbell dropped", turn_id=turn_id, why=claim.why)
            return f"dropped: {claim.why}"
        if claim.lost:
            COUNTERS.add(m.LAPSED, "turn")
        did = "lost"
        try:
            did = self._claimed(claim, ownership)
            return did
        finally:
            if did == "lost":
                # This process lives: said until Redis hears it, so that the turn is not taken for what kills workers.
                self._beats.renew(lambda: self._turns.release(claim), _ignore)

    def _claimed(self, claim: TurnClaim, ownership: Ownership) -> str:
        with self._beats.renew(lambda: self._turns.beat(claim), ownership.hear):
            view = self._turns.look(claim)
            work = self._brains.of(view.request.brain)
            trying = self._patience.of(view)
            if work is None:
                return self._done(view, self._end_unserved(claim, view, trying))
            request = work.brain.complete(view.request)
            if request is not view.request:
                view = replace(view, request=request)
            return self._done(view, self._acted(work, claim, view, ownership, trying))

    def _done(self, view: TurnView, did: str) -> str:
        """What was done. No place in a line is kept that nobody will take."""
        if view.stands and (left := left_line(view, did)):
            try:
                self._taking.limits.leave(left)
            except Exception as failure:  # once it is first it is found that nobody comes
                log.warning("a line was not left", turn_id=view.request.turn_id, why=type(failure).__name__)
        return did

    def _acted(
        self, work: BrainTurns, claim: TurnClaim, view: TurnView, ownership: Ownership, trying: Trying
    ) -> str:
        try:
            with replace(self._taking, asker=asker_of(view)).here():
                return self._act(work, claim, view, ownership, trying)
        except PlaceLater as later:
            return self._let_wait(claim, later, trying)
        except Exception as failure:
            if self._is_away(failure):
                raise  # it is waited out: the turn is rung again
            # Nobody would do better: another worker reads the same and raises the same.
            log.error("turn failed in the coordinator", failure=failure, turn_id=claim.turn_id)
            return self._ender.end(claim, view, end_of_fault(failure), trying)

    def _let_wait(self, claim: TurnClaim, later: PlaceLater, trying: Trying) -> str:
        """No thread waits with the turn: it is rung a little before its place comes, and half way of a long wait, for
        those before it may have left."""
        wait_s = later.wait_s if later.wait_s <= LOOKS_S else max(LOOKS_S, later.wait_s / 2)
        ring_s = max(0.0, wait_s - EARLY_S)
        let_wait = partial(
            self._turns.let_wait, claim, ring_s, later.wait_s, later.why, later.stands, later.spends
        )
        word = trying(let_wait)
        return f"waits for {later.why}" if word == "WAITS" else "lost"

    def _end_unserved(self, claim: TurnClaim, view: TurnView, trying: Trying) -> str:
        """Its brain is not here. It was given to us because it was cancelled, or nobody else took it up in its time."""
        decision = decide(facts_of(view))
        if not isinstance(decision, End) or decision.ending is Ending.FAILED:
            return "lost"  # it is let go of, for a worker that has its brain
        if decision.stop_reason is StopReason.DEADLINE:
            decision = replace(decision, error=not_served(view.request.brain, self._brains.names))
        return self._ender.end(claim, view, decision, trying)

    def _act(
        self, work: BrainTurns, claim: TurnClaim, view: TurnView, ownership: Ownership, trying: Trying
    ) -> str:
        if view.flag and not view.begun:
            trying(lambda: self._brakes.taken(claim.session_id, view.flag, claim.turn_id))
        call_due_hooks(work.brain, self._turns, claim, view, trying)
        thinking = work.thinking.on_turn_start(view.turn_number)
        facts = facts_of(view)
        decision = decide(facts, thinking)
        if isinstance(decision, Reflect):
            done = work.auxiliary.reflect(claim, view, trying)
            if done:
                return done
            # It cannot be made: on to the step itself.
            decision = decide(replace(facts, reflected_step=facts.step), thinking)
        match decision:
            case Reflect():
                raise AssertionError("a step is reflected on once")
            case Think():
                return self._think(work.thinker, claim, view, ownership, trying)
            case Compact():
                return work.auxiliary.compact_now(claim, view, trying) or self._ender.end(
                    claim, view, NOTHING_TO_COMPACT, trying
                )
            case End():
                return self._ender.end(claim, view, decision, trying)
            case Wait():
                return f"waits: {decision.why}"

    def _think(
        self, thinker: Thinker, claim: TurnClaim, view: TurnView, ownership: Ownership, trying: Trying
    ) -> str:
        asked: StepOutcome = thinker.think(claim, view, ownership.lost, trying)
        match asked:
            case Calls():
                return "committed calls"
            case RungAgain():
                return asked.did
            case Answer():
                return self._ender.end(claim, view, asked.end, trying, asked)
            case None:
                log.info("turn lost while thinking", turn_id=claim.turn_id)
                return "lost"


def _ignore(word: str) -> None:
    """The turn was released, or is another's."""
