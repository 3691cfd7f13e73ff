"""Evaluation of ended turns: judges and their scores, and the record of what a turn decided."""

from __future__ import annotations

from typing import Literal, Protocol, get_args, runtime_checkable

from pydantic import Field

from brainq.contracts.base import OfTurn, Wire
from brainq.contracts.model import TokenUsage
from brainq.contracts.status import Ending, StopReason

JudgeMethod = Literal["model", "rules"]
DECISION_KEY = "support.chat.turn"
Strategy = Literal["direct_answer", "web_augmented", "retrieval_augmented", "tool_assisted"]
ALL_STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)


class JudgeCase(OfTurn):
    """The material of a judge.

    transcript: `[role] text` lines of the turn's messages. Tool results are cut to a maximum length.
    system_prompt: the turn's system prompt, or "" if it is no longer known.
    history: `[role] text` lines of the session's previous turns, which the question may refer to.
    relevant_facts: the context pack's `relevant_facts`, or the texts of its notes.
    """

    question: str
    answer: str
    transcript: str
    relevant_facts: tuple[str, ...] = ()
    system_prompt: str = ""
    history: str = ""


class Judgement(Wire):
    """A score from 0 (bad) to 1 (good), with its reason.

    method: `model`, or `rules` if rules were used in place of a model.
    input_tokens, output_tokens: the usage of the model, or None if no model was called.
    """

    score: float = Field(ge=0, le=1)
    reason: str = Field(max_length=2000)
    method: JudgeMethod = "model"
    model: str = ""
    input_tokens: int | None = Field(default=None, ge=0)
    output_tokens: int | None = Field(default=None, ge=0)


@runtime_checkable
class Judge(Protocol):
    """A scorer of one aspect of an answer. Prompt templates refer to it by `name`."""

    @property
    def name(self) -> str: ...

    def judge(self, case: JudgeCase) -> Judgement: ...


class RuntimeDecisionRecord(Wire):
    """The decisions of a turn, kept for audits and evaluation: one row for each turn, with key `support.chat.turn`.

    turn_number: the number of the turn in its session, from 1.
    strategy: how the turn came to its answer, by the tools that ran; see docs/guides/after-the-answer.md.
    tools: the names of the tools that ran, in the order of their first call.
    context_hash: the hash of the memory and the context pack behind the answer, as 16 hex digits, or "" if there was
        neither.
    prompt_hash: the hash of the system prompt as rendered for the turn, or "" for a turn that never began.
    """

    key: str = DECISION_KEY
    turn_id: str
    session_id: str
    turn_number: int
    strategy: Strategy
    tools: tuple[str, ...]
    context_hash: str
    prompt_hash: str = ""
    elapsed_ms: int
    usage: TokenUsage
    ending: Ending
    stop_reason: StopReason
    prompt_id: str | None = None
    prompt_version: str | None = None
    prompt_tags: tuple[str, ...] = ()


class DecisionStore(Protocol):
    """A place for a brain's decision records instead of SQL: `Brain(decisions=...)`. Any process may call it."""

    def write(self, record: RuntimeDecisionRecord, step_key: str) -> None:
        """Store the record of a turn, in a finalizer worker, within a minute. After a crash it may be called again with
        the same `step_key` and record. An exception is retried, as for any finalizer step."""
        ...

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        """Return the record of a turn, or None if there is none."""
        ...
