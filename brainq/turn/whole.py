"""What becomes of a reply that is not whole: none of its calls runs, the model is told, or the turn ends. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from brainq.contracts.finish import Finish
from brainq.contracts.message import Message
from brainq.contracts.model import ModelReply
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.turn.decide import End

MAX_CUT_REPLIES = 3  # of a turn, each one paid for; the next one ends it

_REMEDIES = {
    Finish.LENGTH: "Write less at once: make fewer calls in one reply, and spread long arguments over several calls.",
    Finish.FILTERED: "Go on another way, or tell the user what cannot be done.",
    Finish.BROKEN: "Write it again.",
}
_ENDS = {
    Finish.LENGTH: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply was cut off"),
    Finish.FILTERED: End(Ending.COMPLETED, StopReason.FILTERED, "the model's reply was filtered"),
    Finish.BROKEN: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply broke off"),
}


@dataclass(frozen=True, slots=True)
class TellModel:
    """Run no call of the reply, and ask again. `text` tells the model why; `problem` is the word for events."""

    problem: Finish
    text: str


def judge_whole(view: TurnView, step: int, reply: ModelReply) -> TellModel | End | None:
    """What to do with the reply of `step`; None: it is whole, act on it.

    A text that was cut or filtered is the turn's last. Calls are asked for again, while steps are left and the turn
    was not cut too often.
    """
    finish = reply.finish
    if finish is Finish.WHOLE:
        return None
    again = bool(reply.calls) or finish is Finish.BROKEN
    if again and step < view.steps_max and cut_replies(view) < MAX_CUT_REPLIES:
        return TellModel(finish, _told(finish, reply))
    return _ENDS[finish]


def cut_replies(view: TurnView) -> int:
    """How many replies of this turn were not whole, as far as its history still holds them."""
    return sum((message.extra or {}).get("problem") in set(Finish) for message in view.own)


def told(tell: TellModel, turn_id: str, step: int) -> Message:
    """The note that follows a reply without calls, whose tool messages would have said it."""
    return Message(
        role="user",
        content=f"[Note from the runtime, not from the user: {tell.text}]",
        turn=turn_id,
        step=step,
        extra={"note": "problem"},
    )


def _told(finish: Finish, reply: ModelReply) -> str:
    tokens = reply.usage.output_tokens
    what = {
        Finish.LENGTH: f"was cut off at {tokens} tokens" if tokens else "was cut off at its length limit",
        Finish.FILTERED: "was stopped by a content filter",
        Finish.BROKEN: f"broke off ({reply.finish_reason[:40]})",
    }[finish]
    ran = "; none of its calls ran" if reply.calls else ""
    return f"Your reply {what}{ran}. {_REMEDIES[finish]}"
