"""Judging an ended turn: who judges what, and the score."""

from __future__ import annotations

from typing import Literal, Protocol, runtime_checkable

from pydantic import Field

from brainq.contracts.base import Wire

JudgeMethod = Literal["model", "rules"]


class JudgeCase(Wire):
    """What a judge reads.

    transcript       `[role] text` lines of the turn's messages, tool results cut to a length
    system_prompt    the turn's; "" where it cannot be told any more
    history          `[role] text` lines of the session's last turns before this one, which the question may refer to
    relevant_facts   the context pack's `relevant_facts`, or the texts its notes carry
    """

    turn_id: str
    session_id: str
    question: str
    answer: str
    transcript: str
    relevant_facts: tuple[str, ...] = ()
    system_prompt: str = ""
    history: str = ""


class Judgement(Wire):
    """A score from 0 (bad) to 1 (good), with its reason. `method`: a model judged, or rules did in its place.

    input_tokens, output_tokens   what asking a model took; None where none was asked
    """

    score: float = Field(ge=0, le=1)
    reason: str = Field(max_length=2000)
    method: JudgeMethod = "model"
    model: str = ""
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)


@runtime_checkable
class Judge(Protocol):
    """Scores one aspect of an answer. `name` is what prompt templates call it by."""

    @property
    def name(self) -> str: ...

    def judge(self, case: JudgeCase) -> Judgement: ...
