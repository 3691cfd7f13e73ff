"""The end of turns: ending a turn, cleaning up after it, and the note about its ending for the next turn's model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Literal

from brainq.contracts.claim import TurnClaim, TurnCleanup, TurnEnd
from brainq.contracts.message import Message
from brainq.contracts.model import Spend
from brainq.contracts.status import TURN_FAILURES, Ending, StopReason, TraceStatus, WorkOutcome
from brainq.contracts.view import TurnView
from brainq.engine.turn.decide import End
from brainq.engine.turn.owned_turn import LOST, Did, LoopEnd, Lost, OwnedTurn, did_or_lost
from brainq.engine.turn.turn_diff import turn_diff
from brainq.engine.visit import AFTER_END
from brainq.runtime.observe.logs import logger

if TYPE_CHECKING:
    from brainq.adapters.redis.turns import RedisTurns
    from brainq.engine.people.children import ChildDesk

log = logger("brainq.turn")
# The script that ends a turn puts the seconds in place of %SECONDS%.
OPEN_CALL_TEXTS = {
    Ending.CANCELLED: "Cancelled after %SECONDS% s.",
    Ending.TIMED_OUT: "No result after %SECONDS% s: the turn's deadline passed; it may still have taken effect.",
    Ending.FAILED: "No result: the turn failed before this call ended.",
    Ending.COMPLETED: "No result: the turn ended before this call did.",
}
OPEN_CALL_STATUS = {
    Ending.CANCELLED: TraceStatus.CANCELLED,
    Ending.TIMED_OUT: TraceStatus.TIMED_OUT,
    Ending.FAILED: TraceStatus.CANCELLED,
    Ending.COMPLETED: TraceStatus.CANCELLED,
}
_MARKERS = {
    Ending.CANCELLED: "[The user cancelled this turn before it was answered.]",
    Ending.TIMED_OUT: "[This turn ran out of time before it was answered.]",
    Ending.FAILED: "[This turn failed before it was answered.]",
}


def ending_marker(ending: Ending, turn_id: str, step: int) -> Message | None:
    """Return the note that tells the next turn's model about an ending without an answer.

    Returns None for an ending with an answer.
    """
    text = _MARKERS.get(ending)
    if not text:
        return None
    return Message(role="user", content=text, turn=turn_id, step=step, extra={"note": "ending"})


def review_note(text: str, turn_id: str) -> Message:
    """Return the note with the result of a review, which is added to the session's conversation."""
    return Message(
        role="user",
        content=f"[A review of this conversation came to this result:]\n{text}",
        turn=turn_id,
        extra={"note": "review"},
    )


@dataclass(kw_only=True, eq=False)
class Ender:
    """The machine that ends turns, each in one script, and cleans up afterwards.

    Every part of the cleanup may run again.

    bounce   submits the inputs that a turn has not read as new turns
    """

    turns: RedisTurns
    bounce: Callable[[str, str, Sequence[str]], None]
    children: ChildDesk
    first_final_step: str

    def end(self, turn: OwnedTurn, end: End, answer: LoopEnd | None = None) -> Did | Lost:
        """End the turn. If input arrives together with the answer, the answer is committed as a step instead, and the
        next step reads the input."""
        claim, view, changes, diff = turn.claim, turn.view, (), ""
        # An answer comes from a step, so a turn with an answer has begun.
        begun = view.begun or (answer is not None and answer.message is not None)
        cut_off = begun and end.ending is not Ending.COMPLETED
        streamed = turn.retry(lambda: self.turns.text_so_far(claim)) if cut_off else ""
        while True:
            ended = self._end(turn, end, answer, begun, streamed, diff, len(changes))
            if ended != "CHANGED":
                break
            # This is rare: most turns change no text, so reading the changes for every turn would be wasted.
            changes = turn.retry(lambda: self.turns.changes(claim))
            diff = turn_diff(changes) or ""
        if isinstance(ended, TurnCleanup):
            self._after(claim, ended)
            word = f"ended: {end.ending} ({end.stop_reason})"
            return Did(WorkOutcome(word, TURN_FAILURES.get(end.ending), end.stop_reason.value))
        if ended == "MORE" and answer and answer.message and answer.spend:
            return turn.retry(partial(self._go_on, claim, answer.message, answer.spend, answer))
        return LOST if ended == "LOST" else Did("more")

    def _end(
        self,
        turn: OwnedTurn,
        end: End,
        answer: LoopEnd | None,
        begun: bool,
        streamed: str,
        diff: str,
        n_changes: int,
    ) -> TurnCleanup | Literal["MORE", "CHANGED", "LOST"]:
        view, turn_id = turn.view, turn.claim.turn_id
        message = answer.message if answer else None
        text = message.content if message else end.text
        review = view.request.kind == "review" and end.ending is Ending.COMPLETED and text.strip()
        made = TurnEnd(
            ending=end.ending,
            stop_reason=end.stop_reason,
            text=text,
            error=end.error,
            answer=message or _message_in_place(view, end, begun, streamed),
            marker=ending_marker(end.ending, turn_id, view.step + 1) if begun else None,
            outcome=review_note(text, turn_id) if review else None,
            open_status=OPEN_CALL_STATUS[end.ending],
            open_text=OPEN_CALL_TEXTS[end.ending],
            first_step=self.first_final_step,
            spend=answer.spend if answer else None,
            tail=answer.tail if answer else "",
            last="" if _is_own_text(message, end) else streamed or last_reply_text(view),
            diff=diff,
            n_changes=n_changes,
            lost=answer.lost if answer else None,
        )
        if turn.visit is None:
            return turn.retry(partial(self.turns.end, turn.claim, made))
        with turn.visit.offering(AFTER_END) as offering:
            ended = turn.retry(partial(self.turns.end, turn.claim, made, offering.offer))
            if isinstance(ended, TurnCleanup):
                offering.take(ended.opened)
            return ended

    def _go_on(self, claim: TurnClaim, message: Message, spend: Spend, answer: LoopEnd) -> Did | Lost:
        """Commit the answer as a step like any other. The next step reads the input that has arrived."""
        done = self.turns.commit_calls(claim, message.step, message, (), spend, answer.tail, lost=answer.lost or ())
        return did_or_lost(done == "COMMITTED", "answered, and goes on with new input")

    def _after(self, claim: TurnClaim, ended: TurnCleanup) -> None:
        try:
            if ended.bounced:
                self.bounce(claim.session_id, claim.turn_id, ended.bounced)
            if ended.children:
                self.children.cancel_children(ended.children)
        except Exception as failure:
            # The sweeper repairs both: input that is neither read nor bounced, and children without a parent.
            log.error("the cleanup after a turn failed", failure=failure, turn_id=claim.turn_id)


def _is_own_text(message: Message | None, end: End) -> bool:
    """Return whether the turn's text was written by the model and is not a standard text."""
    return end.stop_reason is StopReason.ANSWERED or (message is not None and message.content != end.text)


def last_reply_text(view: TurnView) -> str:
    """Return the last text that the model wrote in this turn, or "" if it wrote none."""
    texts = (message.content for message in reversed(view.own_messages) if message.role == "assistant")
    return next((text for text in texts if text.strip()), "")


def _message_in_place(view: TurnView, end: End, begun: bool, streamed: str) -> Message | None:
    """Return the message that enters the history if there is no answer: the fallback text of a limit, or the text that
    was streamed before the turn was cut off."""
    text = end.text if end.ending is Ending.COMPLETED else streamed
    if not begun or not text.strip() or end.stop_reason is StopReason.ANSWERED:
        return None
    return Message(role="assistant", content=text, turn=view.request.turn_id, step=view.step + 1)
