"""How a client follows a turn, and for how long."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import pytest
from pydantic import JsonValue

from brainq import AsyncTurnHandle, as_completed, gather
from brainq import ResultTimeout as patience_ResultTimeout
from brainq.client.following import TextFold, iterate_text, iterate_text_async
from brainq.client.waiting import WaitLimits
from brainq.contracts.status import Ending, StopReason
from brainq.contracts.turn import TurnResult
from brainq.contracts.typed_events import Event, make_event
from brainq.errors import ResultTimeout, TurnRejected

# Several turns at once, and the text of one: without a server.


Said = tuple[str, int, int, str]


def answer(text: str, turn_id: str = "t-1") -> TurnResult:
    return TurnResult(
        turn_id=turn_id, session_id="s", text=text, ending=Ending.COMPLETED, stop_reason=StopReason.ANSWERED
    )


def made(seq: int, kind: str, step: int, attempt: int, text: str) -> Event:
    data: dict[str, JsonValue] = {"step": step, "attempt": attempt}
    if text:
        data["text"] = text
    return make_event(seq, kind, seq, data)


def events(said: Sequence[Said]) -> list[Event]:
    return [made(seq, *one) for seq, one in enumerate(said, 1)]


RETRIED: list[Said] = [
    ("step.started", 1, 1, ""),
    ("text.delta", 1, 1, "Let me "),
    ("text.delta", 1, 1, "see"),
    ("step.started", 1, 2, ""),
    ("text.delta", 1, 2, "Let me look."),
    ("text.delta", 1, 1, " (late)"),
    ("reasoning.delta", 1, 2, "hidden"),
    ("step.started", 2, 1, ""),
    ("text.delta", 2, 1, "It is "),
    ("text.delta", 2, 1, "red."),
]


def test_a_retried_step_is_not_doubled() -> None:
    shown = list(iterate_text(events(RETRIED), lambda: answer("It is red.")))
    assert shown == ["Let me ", "Let me see", "", "Let me look.", "", "It is ", "It is red."]


def test_an_attempt_whose_begin_was_not_seen_replaces_too() -> None:
    fold = TextFold()
    for event in events([("text.delta", 1, 1, "one"), ("text.delta", 1, 2, "two"), ("text.delta", 1, 1, "late")]):
        fold.add(event)
    assert fold.text == "two"


def test_the_last_text_is_the_results() -> None:
    assert list(iterate_text(events(RETRIED[:3]), lambda: answer("The turn was stopped.")))[-1] == (
        "The turn was stopped."
    )
    assert list(iterate_text([], lambda: answer("from SQL"))) == ["from SQL"]


def test_the_text_on_a_loop_is_the_same() -> None:
    async def come() -> AsyncIterator[Event]:
        for event in events(RETRIED):
            yield event

    async def result() -> TurnResult:
        return answer("It is red, sir.")

    async def read() -> list[str]:
        return [text async for text in iterate_text_async(come(), result)]

    assert asyncio.run(read())[-2:] == ["It is red.", "It is red, sir."]


class FakeHandle:
    """A handle whose turn ends when the test says so."""

    def __init__(self, name: str, failure: Exception | None = None) -> None:
        self.name = name
        self.ended = threading.Event()
        self.waits = 0
        self.timeout_s: float | None = None
        self._failure = failure

    def result(self, timeout_s: float | None = None) -> TurnResult:
        self.waits += 1
        self.timeout_s = timeout_s
        if not self.ended.wait(timeout_s):
            raise ResultTimeout("not yet")
        if self._failure is not None:
            raise self._failure
        return answer("done", self.name)


def fakes(number: int) -> Any:
    return [FakeHandle(f"t-{one}") for one in range(number)]


def test_handles_come_in_the_order_of_their_ends() -> None:
    handles = fakes(20)
    iterator = iter(as_completed(handles, timeout_s=60))
    for handle in (handles[19], handles[3], handles[0]):
        handle.ended.set()
        assert next(iterator) is handle
    for handle in handles:
        handle.ended.set()
    assert {handle.name for handle in iterator} == {handle.name for handle in handles} - {"t-19", "t-3", "t-0"}


def test_a_refused_turn_is_yielded_and_its_result_raises() -> None:
    handle = FakeHandle("t-1", TurnRejected("no"))
    handle.ended.set()
    (found,) = as_completed(cast(Any, [handle]), timeout_s=60)
    assert found is handle
    with pytest.raises(TurnRejected):
        found.result()


def test_what_has_not_ended_in_time_is_a_timeout() -> None:
    handles = fakes(2)
    handles[1].ended.set()
    iterator = iter(as_completed(handles, timeout_s=0.2))
    assert next(iterator) is handles[1]
    with pytest.raises(ResultTimeout, match="1 turns"):
        next(iterator)


def test_gather_keeps_the_order_of_the_handles() -> None:
    handles = fakes(3)
    for handle in reversed(handles):
        handle.ended.set()
    assert [result.turn_id for result in gather(handles)] == ["t-0", "t-1", "t-2"]
    assert gather(cast("list[Any]", [])) == ()


def test_gather_shares_its_time() -> None:
    handles = fakes(3)
    handles[0].ended.set()
    with pytest.raises(ResultTimeout):
        gather(handles, timeout_s=0.2)
    assert [handle.waits for handle in handles] == [1, 1, 0]
    for handle in handles:
        handle.ended.set()
    gather(handles, timeout_s=60)
    assert 60 >= handles[0].timeout_s > handles[1].timeout_s > handles[2].timeout_s


class AsyncFake:
    def __init__(self, name: str, failure: Exception | None = None) -> None:
        self.name = name
        self.ended = asyncio.Event()
        self._failure = failure

    async def result(self, timeout_s: float | None = None) -> TurnResult:
        try:
            async with asyncio.timeout(timeout_s):
                await self.ended.wait()
        except TimeoutError:
            raise ResultTimeout("not yet") from None
        if self._failure is not None:
            raise self._failure
        return answer("done", self.name)


def test_the_same_on_a_loop() -> None:
    async def run() -> None:
        handles: Any = [AsyncFake("t-0"), AsyncFake("t-1", TurnRejected("no")), AsyncFake("t-2")]
        found: list[Any] = []
        handles[2].ended.set()
        async for handle in as_completed(handles, timeout_s=60):
            found.append(handle.name)
            handles[1 if len(found) == 1 else 0].ended.set()
        assert found == ["t-2", "t-1", "t-0"]
        results = await gather(cast("list[AsyncTurnHandle]", [handles[2], handles[0]]))
        assert [result.turn_id for result in results] == ["t-2", "t-0"]
        assert [handle async for handle in as_completed(cast("list[AsyncTurnHandle]", []))] == []
        late = cast("list[AsyncTurnHandle]", [AsyncFake("t-3")])
        with pytest.raises(ResultTimeout):
            await gather(late, timeout_s=0.05)
        with pytest.raises(ResultTimeout):
            _ = [handle async for handle in as_completed(late, timeout_s=0.05)]

    asyncio.run(run())


# How long a follower still waits.


def test_without_limits_it_waits_for_ever() -> None:
    patience = WaitLimits("t-1", None, None, 100.0)
    assert math.isinf(patience.remaining_s(1e9))
    patience.check(1e9)


def test_the_whole_wait_is_over_however_much_was_heard() -> None:
    patience = WaitLimits("t-1", 10.0, None, 100.0)
    patience.event_arrived(109.0)
    assert patience.remaining_s(109.0) == 1.0
    patience.check(109.9)
    with pytest.raises(patience_ResultTimeout, match=r"'t-1' has no result after 10 s"):
        patience.check(110.0)


def test_the_silence_begins_anew_with_each_event() -> None:
    patience = WaitLimits("t-1", 60.0, 5.0, 100.0)
    patience.event_arrived(104.0)
    assert patience.remaining_s(105.0) == 4.0
    patience.check(108.9)
    with pytest.raises(patience_ResultTimeout, match="no event for 5 s"):
        patience.check(109.0)


def test_nothing_is_left_of_a_wait_that_is_over() -> None:
    assert WaitLimits("t-1", 0, None, 100.0).remaining_s(103.0) == 0.0
