"""What becomes of a reply that cannot be acted on: one that is not whole, or an answer that does not fit its schema.
None of its calls runs; the model reads why, or the turn ends. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from brainq.contracts.message import Message
from brainq.contracts.model import FinishKind, ModelReply
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.view import TurnView
from brainq.gates.answer_schema import read_answer
from brainq.turn.decide import End

MAX_CUT_REPLIES = 3  # of a turn, each one paid for; the next one ends it
MAX_WRONG_OUTPUTS = 2  # likewise
OUTPUT_PROBLEM = "output"  # the problem of an answer that does not fit its schema
MAX_SCHEMA_CHARS = 8_000  # of it are shown: not every service holds its model to it

_REMEDIES = {
    FinishKind.LENGTH: "Write less at once: make fewer calls in one reply, and spread long arguments over "
    "several calls.",
    FinishKind.FILTERED: "Go on another way, or tell the user what cannot be done.",
    FinishKind.BROKEN: "Write it again.",
}
_CUT_ENDS = {
    FinishKind.LENGTH: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply was cut off"),
    FinishKind.FILTERED: End(Ending.COMPLETED, StopReason.FILTERED, "the model's reply was filtered"),
    FinishKind.BROKEN: End(Ending.COMPLETED, StopReason.LENGTH, "the model's reply broke off"),
}


@dataclass(frozen=True, slots=True)
class AskAgain:
    """Run no call of the reply, and ask again. `text` tells the model why; `problem` is the word for events."""

    problem: str
    text: str


def judge_finish(view: TurnView, step: int, reply: ModelReply) -> AskAgain | End | None:
    """What to do with the reply of `step`; None: it is whole, act on it.

    A text that was cut or filtered is the turn's last. Calls are asked for again, while steps are left and the turn
    was not cut too often.
    """
    finish = reply.finish
    if finish is FinishKind.WHOLE:
        return None
    again = bool(reply.calls) or finish is FinishKind.BROKEN
    if again and step < view.steps_max and cut_replies(view) < MAX_CUT_REPLIES:
        return AskAgain(finish.value, _problem_text(finish, reply))
    return _CUT_ENDS[finish]


def judge_output(view: TurnView, step: int, text: str, schema: dict[str, Any]) -> AskAgain | End | None:
    """What to do with the answer of `step`; None: it fits the schema."""
    _, problem = read_answer(schema, text)
    if not problem:
        return None
    if step < view.steps_max and _count(view, {OUTPUT_PROBLEM}) < MAX_WRONG_OUTPUTS:
        shown = json.dumps(schema, ensure_ascii=False)
        asked = f" The schema: {shown}" if len(shown) <= MAX_SCHEMA_CHARS else ""
        return AskAgain(
            OUTPUT_PROBLEM,
            f"Your answer does not fit the output schema: {problem}. Answer again, with JSON that fits it and nothing "
            f"else.{asked}",
        )
    why = f"the answer does not fit its schema: {problem}"
    return End(Ending.COMPLETED, StopReason.INVALID_OUTPUT, why, error=why)


def cut_replies(view: TurnView) -> int:
    """How many replies of this turn were not whole, as far as its history still holds them."""
    return _count(view, {finish.value for finish in FinishKind})


def _count(view: TurnView, problems: set[str]) -> int:
    return sum((message.extra or {}).get("problem") in problems for message in view.own_messages)


def problem_note(tell: AskAgain, turn_id: str, step: int) -> Message:
    """The note that follows a reply without calls, whose tool messages would have carried it."""
    return Message(
        role="user",
        content=f"[Note from the runtime, not from the user: {tell.text}]",
        turn=turn_id,
        step=step,
        extra={"note": "problem"},
    )


def _problem_text(finish: FinishKind, reply: ModelReply) -> str:
    tokens = reply.usage.output_tokens
    what = {
        FinishKind.LENGTH: f"was cut off at {tokens} tokens" if tokens else "was cut off at its length limit",
        FinishKind.FILTERED: "was stopped by a content filter",
        FinishKind.BROKEN: f"broke off ({reply.finish_reason[:40]})",
    }[finish]
    ran = "; none of its calls ran" if reply.calls else ""
    return f"Your reply {what}{ran}. {_REMEDIES[finish]}"
