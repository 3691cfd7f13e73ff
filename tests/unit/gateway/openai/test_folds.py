"""The folds of OpenAI's wires: whatever the events are, and wherever a reader breaks off, one whole comes of it."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from brainq.contracts.event import EventKind, TurnEvent
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.gateway.wires.openai.chat_completions import ChunkWriter, render_completion
from brainq.gateway.wires.openai.part_fold import (
    SEPARATOR,
    PartCompleted,
    PartEnded,
    PartEvent,
    PartFailed,
    PartFold,
    PartStarted,
    PartText,
    ToolCallsRequested,
)
from brainq.gateway.wires.openai.part_reader import PartSelector, read_part_so_far
from brainq.gateway.wires.openai.response_fold import ResponseFold, render_response, response_id, split_response_id

TURN = "turn1"
TEXTS = st.lists(st.sampled_from(["a", "b", "🦊", "é ", "\n", "👩‍👧"]), max_size=4)


@st.composite
def turns(draw: st.DrawFn) -> tuple[list[TurnEvent], TurnResult]:
    """The events of a turn: steps with attempts that break off, calls of the brain's and of the client's, an ending."""
    events: list[TurnEvent] = []

    def emit(kind: EventKind, **data: Any) -> None:
        events.append(TurnEvent(seq=len(events) + 1, kind=kind, at_ms=5_000 + len(events), data=data))

    emit(EventKind.TURN_ACTIVE, deadline_in_ms=1)
    text, spent = "", 0
    for step in range(1, draw(st.integers(1, 4)) + 1):
        for attempt in range(1, draw(st.integers(1, 3)) + 1):
            emit(EventKind.STEP_STARTED, step=step, attempt=attempt)
            text = ""
            for part in draw(TEXTS):
                for thought in draw(st.sampled_from([(), (), ("Hm. ",), ("Hm 🦊", "m.")])):
                    emit(EventKind.REASONING_DELTA, step=step, attempt=attempt, text=thought)
                emit(EventKind.TEXT_DELTA, step=step, attempt=attempt, text=part)
                text += part
        wants = draw(st.sampled_from(["end", "brain", "client"]))
        if wants == "end":
            break
        emit(EventKind.STEP_ENDED, step=step, calls=2, plan=[], input_tokens=10, output_tokens=step)
        spent += 10
        calls = [f"c{step}-{i}" for i in range(draw(st.integers(1, 3)))]
        for call in calls:
            if wants == "client":
                emit(EventKind.CALL_PARKED, call=call, why="client", tool="weather", arguments="{}")
            else:
                emit(EventKind.CALL_DISPATCHED, call=call, attempt=1)
        if wants == "client":
            emit(EventKind.TURN_PARKED, awaits="client")
            if draw(st.booleans()):
                emit(EventKind.TURN_PARKED, awaits="people")
                emit(EventKind.TURN_PARKED, awaits="client")
            emit(EventKind.TURN_RESUMED, parked_ms=1)
        for call in calls:
            emit(EventKind.CALL_ENDED, call=call, tool="x", status="completed", latency_ms=1, detail="")
        text = ""
    ending = draw(st.sampled_from(list(Ending)))
    completed = ending is Ending.COMPLETED
    said = text + draw(st.sampled_from(["", "\n\nSources: x"])) if text else "No answer."
    emit(EventKind.RESULT, ending=ending.value, stop_reason="answered", elapsed_ms=1)
    return events, TurnResult(
        turn_id=TURN,
        session_id="s1",
        text=said if completed else "",
        ending=ending,
        stop_reason=StopReason.ANSWERED if completed else StopReason.DEADLINE,
        input_tokens=spent + 10,
        output_tokens=20,
    )


def words_of(turn: tuple[list[TurnEvent], TurnResult]) -> list[PartEvent]:
    events, result = turn
    fold = PartFold(TURN)
    return [word for event in events for word in fold.read(event, result if event.is_final else None)]


def parts_of(words: list[PartEvent]) -> dict[int, list[PartEvent]]:
    parts: dict[int, list[PartEvent]] = {}
    for word in words:
        parts.setdefault(word.part, []).append(word)
    return parts


@settings(max_examples=30, deadline=None)
@given(turns())
def test_each_part_begins_once_and_ends_once(turn: tuple[list[TurnEvent], TurnResult]) -> None:
    parts = parts_of(words_of(turn))
    assert list(parts) == list(range(1, len(parts) + 1))
    for number, words in parts.items():
        assert isinstance(words[0], PartStarted)
        assert isinstance(words[-1], PartEnded)
        assert not any(isinstance(word, (PartStarted, PartEnded)) for word in words[1:-1])
        assert isinstance(words[-1], ToolCallsRequested) == (number < len(parts))
    last = parts[len(parts)][-1]
    assert isinstance(last, PartCompleted if turn[1].ending is Ending.COMPLETED else PartFailed)
    spent = sum(words[-1].usage.input_tokens for words in parts.values() if isinstance(words[-1], PartEnded))
    assert spent == turn[1].input_tokens


@settings(max_examples=30, deadline=None)
@given(turns())
def test_what_is_streamed_ends_with_the_whole_text(turn: tuple[list[TurnEvent], TurnResult]) -> None:
    for words in parts_of(words_of(turn)).values():
        streamed = "".join(word.text for word in words if isinstance(word, PartText))
        last = words[-1]
        assert isinstance(last, PartEnded)
        final = last.text.split(SEPARATOR)[-1]
        # An attempt that broke off may have said more than the one after it, which nobody can take back.
        assert final in streamed
        if isinstance(last, PartCompleted):
            assert last.text.endswith(turn[1].text)


@settings(max_examples=30, deadline=None)
@given(turns())
def test_a_response_is_continued_behind_any_number(turn: tuple[list[TurnEvent], TurnResult]) -> None:
    for part, words in parts_of(words_of(turn)).items():
        fold = ResponseFold(TURN, "shop", "s1", part=part)
        frames = [fold.write(word) for word in words]
        events = b"".join(frames).split(b"\n\n")[:-1]
        numbers = [json.loads(event.split(b"data: ", 1)[1])["sequence_number"] for event in events]
        assert numbers == list(range(len(events)))
        assert_told_alike([json.loads(event.split(b"data: ", 1)[1]) for event in events])
        for seen in numbers:
            again = ResponseFold(TURN, "shop", "s1", part=part, seen=seen)
            rest = b"".join(again.write(word) for word in words)
            assert rest.split(b"\n\n")[:-1] == events[seen + 1 :]
        body = render_response(ResponseFold(TURN, "shop", "s1", part=part), words)
        last = json.loads(events[-1].split(b"data: ", 1)[1])
        assert last["response"] == body
        assert split_response_id(body["id"]) == (TURN, part)
        done = [json.loads(event.split(b"data: ", 1)[1]) for event in events]
        items = [event["item"] for event in done if event["type"] == "response.output_item.done"]
        assert items == body["output"]


def assert_told_alike(events: list[dict[str, Any]]) -> None:
    """Each item's events name its place, and each part of a summary is its deltas."""
    begun = [event["item"]["id"] for event in events if event["type"] == "response.output_item.added"]
    assert all(event["output_index"] == begun.index(event["item_id"]) for event in events if "item_id" in event)
    spans: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "response.reasoning_summary_part.added":
                assert event["summary_index"] == len(spans)
                spans[event["summary_index"]] = ""
            case "response.reasoning_summary_text.delta":
                assert event["summary_index"] == len(spans) - 1
                spans[event["summary_index"]] += event["delta"]
            case "response.reasoning_summary_part.done":
                assert event["part"]["text"] == spans[event["summary_index"]]
            case _:
                pass
    done = [event for event in events if event["type"] == "response.reasoning_summary_part.done"]
    assert len(done) == len(spans)
    stand = [part["text"] for item in events[-1]["response"]["output"] for part in item.get("summary", ())]
    assert set(stand) <= set(spans.values())


@settings(max_examples=30, deadline=None)
@given(turns())
def test_chunks_are_one_choice_with_one_finish(turn: tuple[list[TurnEvent], TurnResult]) -> None:
    for words in parts_of(words_of(turn)).values():
        fold = ChunkWriter(TURN, "shop", with_usage=True)
        frames = b"".join(fold.write(word) for word in words).split(b"\n\n")[:-1]
        if isinstance(words[-1], PartFailed):
            assert "error" in json.loads(frames[-1].removeprefix(b"data: "))
            continue
        assert frames[-1] == b"data: [DONE]"
        chunks = [json.loads(frame.removeprefix(b"data: ")) for frame in frames[:-1]]
        assert chunks[-1]["choices"] == []
        finishes = [chunk["choices"][0]["finish_reason"] for chunk in chunks[:-1]]
        assert [finish for finish in finishes if finish] == [finishes[-1]]


def test_a_new_attempt_is_told_from_where_it_says_something_else() -> None:
    def streamed(*attempts: tuple[str, ...]) -> tuple[list[str], str]:
        fold, said = PartFold(TURN), list[str]()
        for attempt, parts in enumerate(attempts, 1):
            for part in parts:
                event = TurnEvent(
                    seq=1, kind=EventKind.TEXT_DELTA, at_ms=0, data={"step": 1, "attempt": attempt, "text": part}
                )
                said += [word.text for word in fold.read(event) if isinstance(word, PartText)]
        return said, fold.whole_text

    assert streamed(("One ", "two"), ("One ", "two ", "three")) == (["One ", "two", " ", "three"], "One two three")
    assert streamed(("One ", "two"), ("One ", "too")) == (["One ", "two", f"{SEPARATOR}One too"], "One too")
    assert streamed(("One",), ("On",)) == (["One"], "On")


def test_what_a_broken_attempt_thought_was_told_and_stands_no_longer() -> None:
    parts, words = PartFold(TURN), list[PartEvent]()
    for seq, (kind, attempt, text) in enumerate(
        [
            (EventKind.REASONING_DELTA, 1, "One"),
            (EventKind.REASONING_DELTA, 1, ", two"),
            (EventKind.STEP_STARTED, 2, ""),
            (EventKind.REASONING_DELTA, 2, "Three"),
            (EventKind.TEXT_DELTA, 2, "Well: "),
            (EventKind.REASONING_DELTA, 2, "Four"),
            (EventKind.TEXT_DELTA, 2, "five"),
        ],
        1,
    ):
        data: dict[str, Any] = {"step": 1, "attempt": attempt, "text": text}
        words += parts.read(TurnEvent(seq=seq, kind=kind, at_ms=0, data=data))
    result = TurnResult(
        turn_id=TURN, session_id="s1", text="Well: five", ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED
    )
    words += parts.read(TurnEvent(seq=8, kind=EventKind.RESULT, at_ms=0, data={}), result)
    last = words[-1]
    assert isinstance(last, PartCompleted)
    assert (last.text, last.thoughts) == ("Well: five", ("Three", "Four"))
    assert render_completion(TURN, "shop", 0, last)["choices"][0]["message"]["reasoning_content"] == "Three\n\nFour"
    fold = ChunkWriter(TURN, "shop", with_usage=False)
    frames = b"".join(map(fold.write, words)).split(b"\n\n")[:-2]
    deltas = [json.loads(frame.removeprefix(b"data: "))["choices"][0]["delta"] for frame in frames]
    streamed = [delta["reasoning_content"] for delta in deltas if "reasoning_content" in delta]
    assert streamed == ["One", ", two", "\n\nThree", "\n\nFour"]
    reasoning, message = render_response(ResponseFold(TURN, "shop", "s1"), words)["output"]
    assert [part["text"] for part in reasoning["summary"]] == ["Three", "Four"]
    assert message["content"][0]["text"] == "Well: five"


def test_ids_that_are_none_of_ours() -> None:
    assert response_id(TURN, 1) == "resp_turn1"
    for given_id in ("turn1", "resp_", "resp_turn1.", "resp_turn1.1", "resp_turn1.x", "resp_turn1.99999"):
        assert split_response_id(given_id) is None


@settings(max_examples=12, deadline=None)
@given(turns())
def test_a_text_in_one_piece_is_the_results_own(turn: tuple[list[TurnEvent], TurnResult]) -> None:
    events, result = turn
    fold = PartFold(TURN, in_one_piece=True)
    said: dict[int, str] = {}
    for event in events:
        for word in fold.read(event, result if event.is_final else None):
            if isinstance(word, PartText):
                said[word.part] = said.get(word.part, "") + word.text
            elif isinstance(word, PartEnded):
                assert said.get(word.part, "") == word.text
                if isinstance(word, PartCompleted):
                    assert word.text == result.text


def test_a_stream_that_is_cut_says_the_number_behind_which_it_is_continued() -> None:
    fold = ResponseFold(TURN, "shop", "s1")
    assert cut_number(fold) == 0
    fold.write(PartStarted(1, 5))
    fold.write(PartText(1, "a"))
    assert cut_number(fold) == fold.number - 1 > 1
    continued = ResponseFold(TURN, "shop", "s1", seen=99)
    continued.write(PartStarted(1, 5))
    assert cut_number(continued) == 99, "nothing new was told"


def cut_number(fold: ResponseFold) -> int:
    return json.loads(fold.cut().partition(b"data: ")[2])["sequence_number"]


def test_a_part_that_waits_for_its_client_is_read_with_its_calls() -> None:
    call: dict[str, Any] = {"call": "c1-0", "why": "client", "tool": "weather", "arguments": "{}"}
    events = [
        TurnEvent(seq=1, kind=EventKind.TEXT_DELTA, at_ms=0, data={"step": 1, "attempt": 1, "text": "Let me see."}),
        TurnEvent(seq=2, kind=EventKind.CALL_PARKED, at_ms=0, data=call),
        TurnEvent(seq=3, kind=EventKind.TURN_PARKED, at_ms=0, data={"awaits": "client"}),
    ]

    async def so_far() -> list[TurnEvent]:
        return events

    handle: Any = SimpleNamespace(turn_id=TURN, events_so_far=so_far)
    *_, last = asyncio.run(read_part_so_far(handle, PartSelector()))
    assert isinstance(last, ToolCallsRequested)
    assert [call.tool for call in last.calls] == ["weather"]
