"""Conversations that the tests of a turn's context build on: by hand, and at random."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import settings
from hypothesis import strategies as st

from brainq.contracts.message import Message, ToolCall
from brainq.contracts.model import ModelReply, ModelRequest, TokenUsage
from brainq.contracts.turn import TurnRequest
from brainq.engine.models.auxiliary import AuxiliaryModel
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, fails, says
from brainq.engine.turn.prompt.summary import summary_message

TURN = "t-now"
unhurried = settings(deadline=None)  # other tests share the machine
Rules = Callable[[ModelRequest], ModelReply | ScriptedFailure]


def user(text: str, turn: str = TURN) -> Message:
    return Message(role="user", content=text, turn=turn)


def asks(step: int, *tools: str, text: str = "", turn: str = TURN, **arguments: str) -> Message:
    """A reply that calls these tools, all with the same arguments."""
    wanted = tuple(
        ToolCall(id=f"c{step}-{index}", name=tool, arguments=dict(arguments)) for index, tool in enumerate(tools)
    )
    return Message(role="assistant", content=text, calls=wanted, turn=turn, step=step)


def result(step: int, index: int, text: str, tool: str = "look", turn: str = TURN, is_error: bool = False) -> Message:
    return Message(
        role="tool", content=text, call_id=f"c{step}-{index}", name=tool, turn=turn, step=step, is_error=is_error
    )


def answer(text: str, turn: str = TURN, step: int = 1) -> Message:
    return Message(role="assistant", content=text, turn=turn, step=step)


def steps(count: int, result_chars: int, first: int = 1) -> list[Message]:
    """So many steps of the turn, one call each."""
    return [
        message
        for step in range(first, first + count)
        for message in (asks(step, "look", at=f"page {step}"), result(step, 0, "x" * result_chars))
    ]


def request(text: str = "the question", **given: object) -> TurnRequest:
    return TurnRequest.model_validate({"turn_id": TURN, "session_id": "s1", "user_message": text, **given})


def asked(auxiliary: Rules | None) -> Callable[[], AuxiliaryModel]:
    """A model beside the steps that answers by rules; None: one that cannot be asked."""
    provider = ScriptedProvider([], auxiliary=auxiliary)
    return lambda: AuxiliaryModel(provider, "m")


def free(provider: str, model: str, usage: TokenUsage) -> float | None:
    return usage.total / 1000


def says_always(text: str) -> Rules:
    return lambda _: says(text)


def fails_always(kind: str) -> Rules:
    return lambda _: fails(kind)


WORDS = st.text(st.sampled_from("abc é漢\n"), max_size=60)
LONG = st.integers(0, 400).map(lambda count: "word " * count)
TEXTS = st.one_of(WORDS, LONG)


@st.composite
def histories(draw: st.DrawFn) -> list[Message]:
    """A session's history as Redis may hold it, and worse: notes, notices, orphans, an earlier summary, a system
    message; the last turn is TURN."""
    found: list[Message] = []
    if draw(st.booleans()):
        found.append(summary_message(draw(TEXTS), draw(st.lists(WORDS, max_size=3)), "rules", 400))
    if draw(st.integers(0, 9)) == 0:
        found.append(Message(role="system", content="Be kind."))
    turns = [*(f"t-{number}" for number in range(draw(st.integers(0, 3)))), TURN]
    for turn in turns:
        found.append(user(draw(TEXTS), turn))
        for step in range(1, draw(st.integers(0, 5)) + 1):
            found += draw(_one_step(turn, step))
        if turn != TURN:
            found.append(answer(draw(TEXTS), turn, 9))
    for _ in range(draw(st.integers(0, 2))):  # results without a call, calls without a result
        place = draw(st.integers(0, len(found)))
        orphan = draw(st.sampled_from([result(7, 0, "lost", turn="t-0"), asks(8, "look", turn="t-0")]))
        found.insert(place, orphan)
    return found


@st.composite
def _one_step(draw: st.DrawFn, turn: str, step: int) -> list[Message]:
    calls = draw(st.integers(1, 3))
    found = [asks(step, *(["look", "book", "send"][:calls]), text=draw(WORDS), turn=turn, at=draw(WORDS))]
    found += [result(step, index, draw(TEXTS), turn=turn, is_error=draw(st.booleans())) for index in range(calls)]
    kind = draw(st.integers(0, 7))
    if kind == 0:
        note = "[Note from the runtime]\nTry something else."
        found.append(Message(role="user", content=note, turn=turn, step=step, extra={"note": "reflection"}))
    elif kind == 1:
        found.append(Message(role="user", content="[Notice from the runtime: a late write succeeded.]"))
    elif kind == 2:
        found.append(user("And be quick.", turn))
    return found


def pairs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """(place of a reply with calls, place of a result of it); a result goes to the newest call of its id."""
    asked_at: dict[str, int] = {}
    found: list[tuple[int, int]] = []
    for place, message in enumerate(messages):
        for call in message.calls:
            asked_at[call.id] = place
        if message.role == "tool" and message.call_id in asked_at:
            found.append((asked_at[message.call_id], place))
    return found
