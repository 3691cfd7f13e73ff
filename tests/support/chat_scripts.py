"""Random turns as their events, with the texts that belong to each, for tests of the code that folds them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.history import TurnCall
from brainq.contracts.model import Spend
from brainq.contracts.status import Effect, Ending, StopReason, TraceStatus
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.chat.fold import EventDetails

TURN = "01k7x2turn"
PIECES = (EventKind.TEXT_DELTA, EventKind.REASONING_DELTA)
TEXTS = st.text('ab \n😀é\u200d👩"\\', min_size=1, max_size=5)


@dataclass
class Script:
    """A random turn.

    texts, thoughts: the text of the last attempt of each step, and each span of its reasoning, in order.
    """

    events: list[TurnEvent] = field(default_factory=list[TurnEvent])
    more: list[EventDetails] = field(default_factory=list[EventDetails])
    texts: list[str] = field(default_factory=list[str])
    thoughts: list[str] = field(default_factory=list[str])
    result: TurnResult | None = None

    def add(self, kind: EventKind, more: EventDetails | None = None, /, **data: Any) -> None:
        seq = len(self.events) + 1
        self.events.append(TurnEvent(seq=seq, kind=kind, at_ms=1_700_000_000_000 + seq, data=data))
        self.more.append(more or EventDetails())

    @property
    def whole(self) -> list[tuple[TurnEvent, EventDetails]]:
        return list(zip(self.events, self.more, strict=True))


@st.composite
def scripts(draw: Callable[[st.SearchStrategy[Any]], Any]) -> Script:
    """Draw a turn of one to three steps, with the events that brainq publishes."""
    script = Script()
    if draw(st.booleans()):
        script.add(EventKind.TURN_QUEUED, ahead=1)
    script.add(EventKind.TURN_ACTIVE, deadline_in_ms=1000)
    steps = draw(st.integers(1, 3))
    ending = draw(st.sampled_from(Ending))
    last = ""
    for step in range(1, steps + 1):
        last = _attempts(draw, script, step)
        if step < steps or draw(st.booleans()):
            _reply(draw, script, step)
            last = ""
        _between(draw, script)
    rest = draw(st.sampled_from(["", "\n\nSources"]))
    answers = {
        Ending.COMPLETED: last + rest if last else "The limit was reached.",
        Ending.TIMED_OUT: "It took too long.",
    }
    text = answers.get(ending, "")
    script.result = TurnResult(
        turn_id=TURN,
        session_id="s1",
        text=text,
        ending=ending,
        stop_reason=StopReason.ANSWERED if ending is Ending.COMPLETED else StopReason.CANCELLED,
        spends=(Spend(step=1, model="m", input_tokens=3, output_tokens=4),),
        error="no" if ending is Ending.FAILED else None,
    )
    if last and text == last + rest:
        script.texts[-1] = text
    elif text:
        script.texts.append(text)
    script.add(EventKind.TURN_CLOSING, ending=ending.value, stop_reason="answered")
    script.add(EventKind.RESULT, EventDetails(result=script.result), ending=ending.value, stop_reason="", elapsed_ms=1)
    return script


def _attempts(draw: Any, script: Script, step: int) -> str:
    text, spans = "", list[str]()
    attempts = draw(st.integers(1, 3))
    for attempt in range(1, attempts + 1):
        script.add(EventKind.STEP_STARTED, step=step, attempt=attempt)
        text, spans = "", []
        thinks = False
        for kind, piece in draw(st.lists(st.tuples(st.sampled_from(PIECES), TEXTS), max_size=3)):
            script.add(kind, step=step, attempt=attempt, text=piece)
            if kind is EventKind.TEXT_DELTA:
                text += piece
            elif thinks:
                spans[-1] += piece
            else:
                spans.append(piece)
            thinks = kind is EventKind.REASONING_DELTA
            if draw(st.integers(0, 5)) == 0:
                script.add(EventKind.INPUT_ACCEPTED, input=f"m{step}")
        if attempt < attempts and draw(st.booleans()):
            script.add(EventKind.STEP_RETRIED, step=step, attempt=attempt, kind="stream", wait_ms=1)
    if text:
        script.texts.append(text)
    script.thoughts += spans
    return text


def _reply(draw: Any, script: Script, step: int) -> None:
    """Draw calls one after another. Each runs, needs an approval first, or is the client's."""
    kinds = draw(st.lists(st.sampled_from(["runs", "asks", "hands", "fails"]), max_size=3))
    calls = [_call(step, index, kind) for index, kind in enumerate(kinds)]
    for call, kind in zip(calls, kinds, strict=True):
        if kind == "asks":
            script.add(
                EventKind.APPROVAL_REQUESTED,
                call=call.call_id,
                tool=call.tool,
                effect="local_write",
                reason="asks",
                expires_in_ms=60_000,
            )
    plan = [{"call": call.call_id, "tool": call.tool, "effect": "network"} for call in calls]
    script.add(EventKind.STEP_ENDED, EventDetails(calls=tuple(calls)), step=step, calls=len(calls), plan=plan)
    for call, kind in zip(calls, kinds, strict=True):
        _run(draw, script, call, kind)


def _run(draw: Any, script: Script, call: TurnCall, kind: str) -> None:
    status, detail = TraceStatus.COMPLETED, ""
    if kind in ("asks", "hands"):
        told = {"tool": call.tool, "arguments": "{}"} if kind == "hands" else {}
        why = "client" if kind == "hands" else "approval"
        script.add(EventKind.CALL_PARKED, call=call.call_id, why=why, **told)
        script.add(EventKind.TURN_PARKED, awaits="people")
    if kind == "asks":
        decision = draw(st.sampled_from(["approved", "denied", "expired"]))
        edited = {"name": "other"} if decision == "approved" and draw(st.booleans()) else None
        script.add(
            EventKind.APPROVAL_DECIDED,
            EventDetails(arguments=edited),
            call=call.call_id,
            decision=decision,
            edited=bool(edited),
        )
        if decision != "approved":
            status, detail = TraceStatus.DENIED, "approval"
    if kind == "fails":
        status = TraceStatus.FAILED
    if kind in ("asks", "hands"):
        script.add(EventKind.TURN_RESUMED, parked_ms=1)
    script.add(EventKind.CALL_RUNNING, call=call.call_id, tool=call.tool, attempt=1)
    ended = call.model_copy(
        update={
            "status": status,
            "detail": detail,
            "result": f"result of {call.call_id}",
            "is_error": status is not TraceStatus.COMPLETED,
        }
    )
    script.add(
        EventKind.CALL_ENDED,
        EventDetails(calls=(ended,)),
        call=call.call_id,
        tool=call.tool,
        status=status.value,
        latency_ms=1,
        detail=detail,
    )


def _call(step: int, index: int, kind: str) -> TurnCall:
    return TurnCall(
        id=f"{TURN}-c{step}-{index}",
        session_id="s1",
        turn_id=TURN,
        call_id=f"c{step}-{index}",
        tool="save",
        effect=Effect.NETWORK,
        status=TraceStatus.PLANNED,
        step=step,
        wave=1,
        arguments="{broken" if kind == "fails" else {"name": "😀"},
    )


def _between(draw: Any, script: Script) -> None:
    match draw(st.integers(0, 6)):
        case 0:
            script.add(EventKind.HOLD_PLACED, hold="h1", reason="let me look", kind="hold")
        case 1:
            script.add(EventKind.TURN_DIFF, diff="--- a")
        case 2:
            script.add(EventKind.TURN_CANCELLING, reason="enough")
        case _:
            pass
