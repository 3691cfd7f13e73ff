"""Ended turns, and small doubles of what the finalizer's parts stand on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Literal

from brainq.contracts.claim import FinalStepClaim, NoClaim, NoFinalStepClaim
from brainq.contracts.evaluation import JudgeCase, Judgement, RuntimeDecisionRecord
from brainq.contracts.memory import MemoryItem, Observation, RecordedTurn
from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, Spend, TokenUsage
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import Citation, TurnRequest, TurnResult
from brainq.contracts.view import EndedTurn, TurnDetails
from brainq.engine.brain.middleware import Hooks
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, says

ANSWERED = (Ending.COMPLETED, StopReason.ANSWERED)
TIMED_OUT = (Ending.TIMED_OUT, StopReason.DEADLINE)
CANCELLED = (Ending.CANCELLED, StopReason.CANCELLED)
FAILED = (Ending.FAILED, StopReason.MODEL_ERROR)
OUT_OF_STEPS = (Ending.COMPLETED, StopReason.MAX_STEPS)

RESULT = TurnResult(
    turn_id="turn-1",
    session_id="s1",
    text="In the shed.",
    local_citations=(Citation(source="boat.md", title="Boat", quote="in the shed"),),
    web_citations=(Citation(source="https://a.example"),),
    rendered_content_paths=("/tmp/page.html",),
    context_pack_json='{"notes": []}',
    input_tokens=30,
    output_tokens=4,
    ending=ANSWERED[0],
    stop_reason=ANSWERED[1],
    warnings=("a note",),
    cost_usd=0.25,
    spends=(Spend(step=1, input_tokens=30, output_tokens=4),),
    steps=2,
    tool_calls=1,
    elapsed_ms=1200,
)
REQUEST = TurnRequest(turn_id="turn-1", session_id="s1", user_message="Where?", show_citations=True)

Replies = Callable[[ModelRequest], "ModelReply | ScriptedFailure"]


def recorded(
    user: str = "What is up?",
    text: str = "All is well.",
    how: tuple[Ending, StopReason] = ANSWERED,
    messages: Sequence[Message] = (),
    pack: str | None = None,
    citations: Sequence[Citation] = (),
) -> RecordedTurn:
    return RecordedTurn(
        turn_id="turn-1",
        session_id="s1",
        user_message=user,
        text=text,
        ending=how[0],
        stop_reason=how[1],
        messages=tuple(messages),
        context_pack_json=pack,
        citations=tuple(citations),
        step_key="turn-1:memory",
    )


def ended(
    user: str = "What is up?", text: str = "All is well.", how: tuple[Ending, StopReason] = ANSWERED, **more: Any
) -> EndedTurn:
    request = {"turn_id": "turn-1", "session_id": "s1", "user_message": user} | more.pop("request", {})
    values: dict[str, Any] = {
        "ending": how[0],
        "stop_reason": how[1],
        "text": text,
        "error": "",
        "steps": 1,
        "tool_calls": 0,
        "tools": (),
        "usage": TokenUsage(input_tokens=3, output_tokens=2),
        "cost_usd": 0.0,
        "cost_known": False,
        "sources": (),
        "context_hash": "",
        "prompt_hash": "",
        "turn_number": 1,
        "elapsed_ms": 5,
        "failing_error": "",
    }
    return EndedTurn(request=TurnRequest.model_validate(request), **(values | more))


def talk(*said: tuple[str, str]) -> tuple[Message, ...]:
    """Messages of turn turn-1: `talk(("user", "Hi"), ("tool", "..."))`."""
    return tuple(Message.model_validate({"role": role, "content": text, "turn": "turn-1"}) for role, text in said)


def asking(*tools: str, text: str = "") -> Message:
    calls = tuple(ToolCall(id=f"c1-{n}", name=tool, arguments={}) for n, tool in enumerate(tools))
    return Message(role="assistant", content=text, calls=calls, turn="turn-1", step=1)


def auxiliary(answer: str | ScriptedFailure | Replies) -> AuxiliaryModel:
    """A model that answers every request beside the steps with this."""
    reply = says(answer) if isinstance(answer, str) else answer
    rules: Replies = reply if callable(reply) else lambda _: reply
    return AuxiliaryModel(ScriptedProvider([says("a step")], auxiliary=rules), "small-model")


@dataclass
class OneItem:
    """An extractor that finds one thing; it raises or hangs where it is told to."""

    raises: Exception | None = None
    hangs_until: threading.Event | None = None
    returns: Any = (MemoryItem(kind="fact", text="The user is here."),)
    turns: list[RecordedTurn] = field(default_factory=list[RecordedTurn])

    def extract_turn(self, turn: RecordedTurn) -> Any:
        self.turns.append(turn)
        return self._answer()

    def observe_turn(self, turn: RecordedTurn, source_event_id: str) -> Any:
        self.turns.append(turn)
        return self._answer()

    def _answer(self) -> Any:
        if self.hangs_until is not None:
            self.hangs_until.wait(30)
        if self.raises is not None:
            raise self.raises
        return self.returns


@dataclass
class OwnJudge:
    """A judge of one's own."""

    name: str = "tone"
    returns: Any = field(default_factory=lambda: Judgement(score=0.5, reason="so so"))
    raises: BaseException | None = None
    hangs_until: threading.Event | None = None
    cases: list[JudgeCase] = field(default_factory=list[JudgeCase])

    def judge(self, case: JudgeCase) -> Any:
        self.cases.append(case)
        if self.hangs_until is not None:
            self.hangs_until.wait(30)
        if self.raises is not None:
            raise self.raises
        return self.returns


@dataclass
class Rows:
    """Finalizer rows in memory: each `record_*` takes effect once a step."""

    event_id: str = "chat_message:7"
    kept: tuple[Message, ...] = ()
    done: dict[str, Any] = field(default_factory=dict[str, Any])
    failures: list[tuple[str, int, str, bool]] = field(default_factory=list[tuple[str, int, str, bool]])
    raises: Exception | None = None

    def _once(self, claim: FinalStepClaim, what: Any) -> bool:
        if self.raises is not None:
            raise self.raises
        if claim.step in self.done:
            return False
        self.done[claim.step] = what
        return True

    def record_answer(
        self,
        claim: FinalStepClaim,
        result: TurnResult,
        redact: bool,
        details: TurnDetails,
        user_message: str = "",
        answer: str | None = None,
        decision: tuple[FinalStepClaim, RuntimeDecisionRecord] | None = None,
    ) -> bool:
        if decision is not None:
            self._once(*decision)
        return self._once(claim, result)

    def record_memories(
        self, claim: FinalStepClaim, scope: str, items: Sequence[MemoryItem], spends: Sequence[Spend] = ()
    ) -> bool:
        return self._once(claim, (scope, tuple(items)))

    def record_observations(
        self, claim: FinalStepClaim, scope: str, source_event_id: str, items: Sequence[Observation]
    ) -> bool:
        return self._once(claim, (scope, source_event_id, tuple(items)))

    def record_judges(self, claim: FinalStepClaim, session_id: str, turn_id: str, names: Sequence[str]) -> bool:
        return self._once(claim, tuple(names))

    def record_decision(self, claim: FinalStepClaim, record: RuntimeDecisionRecord) -> bool:
        return self._once(claim, record)

    def source_event_id(self, turn_id: str) -> str:
        return self.event_id

    def transcript(self, turn_id: str) -> tuple[Message, ...]:
        return self.kept

    def note_failure(self, claim: FinalStepClaim, error: str, dead: bool) -> None:
        self.failures.append((claim.step, claim.tries, error, dead))

    def note_done(self, claim: FinalStepClaim) -> None:
        self.done.setdefault(claim.step, None)


@dataclass
class LiveChain:
    """Redis, as far as steps see it."""

    turn: EndedTurn | None = None
    messages: tuple[Message, ...] = ()
    out: TurnResult | None = None
    texts: list[str] = field(default_factory=list[str])
    rung: list[str] = field(default_factory=list[str])
    sent: list[TurnResult] = field(default_factory=list[TurnResult])

    def claim(self, *given: str, and_look: bool = False, and_messages: bool = False) -> NoFinalStepClaim:
        return NoClaim("held")

    def look(self, claim: FinalStepClaim) -> EndedTurn | None:
        return self.turn

    def finish(self, claim: FinalStepClaim) -> str:
        return "FINISHED"

    def ended(self, session_id: str, turn_id: str) -> EndedTurn | None:
        return self.turn

    def may_finish(self, turn: Any) -> bool:
        return True

    def warn_later(self, session_id: str, turn_id: str, warning: str, *, applies: bool) -> None: ...

    def set_text(self, session_id: str, turn_id: str, text: str) -> None:
        self.texts.append(text)

    def published(self, session_id: str, turn_id: str) -> TurnResult | None:
        return self.out

    def publish(self, result: TurnResult) -> Literal["PUBLISHED", "ALREADY", "OPEN"]:
        if self.out is not None:
            return "ALREADY"
        self.out = result
        self.sent.append(result)
        return "PUBLISHED"

    def details(self, session_id: str, turn_id: str) -> TurnDetails:
        return TurnDetails(self.messages)

    def details_of(self, claim: FinalStepClaim) -> TurnDetails:
        return TurnDetails(self.messages)

    def ring_judge(self, session_id: str, turn_id: str, judge: str) -> Literal["RUNG", "ALREADY", "FULL"]:
        self.rung.append(judge)
        return "RUNG"


def brain_with(**parts: Any) -> Any:
    """What steps ask of a brain."""
    return SimpleNamespace(
        **(
            {"memory": None, "prompts": {}, "judges": {}, "redact_logs": False, "hooks": Hooks(), "decisions": None}
            | parts
        )
    )


def context(
    step: str,
    turn: EndedTurn | None = None,
    *,
    brain: Any = None,
    chain: LiveChain | None = None,
    rows: Rows | None = None,
    tries: int = 1,
) -> StepContext:
    held = turn or ended()
    claim = FinalStepClaim("s1", "turn-1", step, "worker", 1, tries)
    given: Any = (chain or LiveChain(held), rows or Rows(), brain_with() if brain is None else brain)
    return StepContext(claim, lambda: held, *given)
