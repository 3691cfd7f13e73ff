"""Coordinator.advance: claim a turn, decide, act, exit."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

from brainq.beats import Beats
from brainq.brain import Brain
from brainq.contracts.claim import CallRef, TurnClaim
from brainq.contracts.message import Message
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.observe.logs import logger
from brainq.turn.beside import Beside
from brainq.turn.decide import End, Reflect, Think, Wait, decide
from brainq.turn.ports import Attention, LaneKeeper, Turns
from brainq.turn.texts import OPEN_CALL_STATUS, OPEN_CALL_TEXTS, marker
from brainq.turn.think import Answer, Asked, Calls, RungAgain, Thinker
from brainq.turn.thinking import ThinkingManager

log = logger("brainq.turn")


@dataclass(slots=True)
class Ownership:
    """Whether the turn is still ours, as the beating thread last heard."""

    word: str = ""

    def lost(self) -> bool:
        return bool(self.word)

    def hear(self, word: str) -> None:
        self.word = word


class Coordinator:
    """Advances turns. Holds no state of its own: any process may advance any turn."""

    def __init__(
        self,
        *,
        owner: str,
        brain: Brain,
        turns: Turns,
        thinker: Thinker,
        beside: Beside,
        lanes: LaneKeeper,
        beats: Beats,
        attention: Attention,
        first_final_step: str,
    ) -> None:
        self._owner = owner
        self._numbers = itertools.count(1)
        self._brain = brain
        self._turns = turns
        self._thinker = thinker
        self._beside = beside
        self._thinking = ThinkingManager(brain.thinking)
        self._lanes = lanes
        self._beats = beats
        self._attention = attention
        self._first_final_step = first_final_step

    def advance(self, session_id: str, turn_id: str, fence: int) -> str:
        """Answer one doorbell. Returns what was done, in a word, for logs and tests."""
        # Each claim signs as an owner of its own: after a loss of Redis' data fences begin again, and a thread
        # from before must not be taken for the new owner because it runs in the same process.
        owner = f"{next(self._numbers)}@{self._owner}"
        claim = self._turns.claim(session_id, turn_id, fence, owner)
        if isinstance(claim, str):
            log.debug("doorbell dropped", turn_id=turn_id, why=claim)
            return f"dropped: {claim}"
        ownership = Ownership()
        with self._beats.hold(lambda: self._turns.beat(claim), ownership.hear):
            view = self._turns.look(claim)
            thinking = self._thinking.on_turn_start(view.turn_number)
            decision = decide(view, thinking)
            if isinstance(decision, Reflect):
                done = self._beside.reflect(claim, view)
                if done:
                    return done
                view = replace(view, reflected_step=view.step)  # it cannot be made: on to the step itself
                decision = decide(view, thinking)
            match decision:
                case Reflect():
                    raise AssertionError("a step is reflected on once")
                case Think():
                    return self._think(claim, view, ownership)
                case End():
                    return self._end(claim, view, decision)
                case Wait():
                    return f"waits: {decision.why}"

    def _think(self, claim: TurnClaim, view: TurnView, ownership: Ownership) -> str:
        asked: Asked = self._thinker.think(claim, view, ownership.lost)
        match asked:
            case Calls():
                for call_id in asked.wants:
                    self._lanes.enter(CallRef(claim.session_id, claim.turn_id, call_id))
                return "committed calls"
            case RungAgain():
                return asked.did
            case Answer():
                return self._end(claim, view, asked.end, asked)
            case None:
                log.info("turn lost while thinking", turn_id=claim.turn_id)
                return "lost"

    def _end(self, claim: TurnClaim, view: TurnView, end: End, answer: Answer | None = None) -> str:
        request = view.request
        text = answer.message.content if answer and answer.message else end.text
        begun = view.begun or answer is not None  # an answer comes from a step, and a step begins the turn
        ended = self._turns.end(
            claim,
            ending=end.ending,
            stop_reason=end.stop_reason,
            text=text,
            error=end.error,
            answer=answer.message if answer and answer.message else self._standing_text(view, end, begun),
            marker=marker(end.ending, request.turn_id, view.step) if begun else None,
            open_status=OPEN_CALL_STATUS[end.ending],
            open_text=OPEN_CALL_TEXTS[end.ending],
            first_step=self._first_final_step,
            spend=answer.spend if answer else None,
            tail=answer.tail if answer else "",
        )
        if ended is None:
            return "lost"
        next_turn, freed = ended
        for call_id in freed:
            self._lanes.leave(CallRef(claim.session_id, claim.turn_id, call_id))
        if next_turn:
            self._attention.again(claim.session_id, next_turn, 1000)
        return f"ended: {end.ending} ({end.stop_reason})"

    def _standing_text(self, view: TurnView, end: End, begun: bool) -> Message | None:
        """A limit's fallback text enters the history like an answer; other endings leave a marker instead."""
        if end.ending is not Ending.COMPLETED or end.stop_reason is StopReason.ANSWERED or not begun:
            return None
        return Message(role="assistant", content=end.text, turn=view.request.turn_id, step=view.step)
