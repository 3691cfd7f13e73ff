from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field

import pytest

from brainq.adapters.models.failures import from_status
from brainq.contracts.model import ModelChunk, ModelReply
from brainq.engine.models.asking.retry import RetryPolicy, ServiceError, call_with_retry, stream_with_retry
from brainq.engine.models.asking.stall_clock import Deadline
from brainq.errors import ProviderError

Step = ModelChunk | ProviderError
REPLY = ModelChunk(reply=ModelReply(text="ok"))


@dataclass
class FakeTime:
    now: float = 100.0
    slept: list[float] = field(default_factory=list[float])

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds

    def policy(self, draw: float = 1.0, max_attempts: int = 8) -> RetryPolicy:
        return RetryPolicy(clock=self.clock, sleep=self.sleep, draw=lambda: draw, max_attempts=max_attempts)


class Attempts:
    """Raises the given errors one after another, then returns `done`; each attempt takes `takes_s`."""

    def __init__(self, time: FakeTime, *errors: ProviderError, takes_s: float = 0.0) -> None:
        self.made = 0
        self._time = time
        self._errors = list(errors)
        self._takes_s = takes_s

    def __call__(self) -> str:
        self.made += 1
        self._time.now += self._takes_s
        if self._errors:
            raise self._errors.pop(0)
        return "done"


def failure(kind: str = "server", *, retryable: bool = True, after_s: float | None = None) -> ServiceError:
    return ServiceError("no", kind=kind, retryable=retryable, retry_after_s=after_s)


def test_backs_off_exponentially() -> None:
    time = FakeTime()
    attempts = Attempts(time, *[failure() for _ in range(4)])
    assert call_with_retry(attempts, Deadline(60, time.clock), time.policy()) == "done"
    assert time.slept == [0.5, 1.0, 2.0, 4.0]


def test_jitter_covers_the_whole_range() -> None:
    time = FakeTime()
    assert time.policy(draw=0.0).wait_s(5, None) == 0.0
    assert time.policy(draw=1.0).wait_s(50, None) == 20.0


def test_waits_at_least_as_long_as_asked() -> None:
    for draw in (0.0, 1.0):
        time = FakeTime()
        call_with_retry(
            Attempts(time, failure("rate_limited", after_s=3.0)), Deadline(60, time.clock), time.policy(draw)
        )
        assert 3.0 <= time.slept[0] <= 3.3


@pytest.mark.parametrize("kind", ["rate_limited", "server"])
def test_a_wait_past_the_deadline_is_not_begun(kind: str) -> None:
    time = FakeTime()
    with pytest.raises(ProviderError) as caught:
        call_with_retry(Attempts(time, failure(kind, after_s=10.0)), Deadline(5, time.clock), time.policy())
    assert (caught.value.kind, caught.value.retryable, time.slept) == (kind, True, [])


def test_what_cannot_succeed_is_raised_at_once() -> None:
    time = FakeTime()
    attempts = Attempts(time, failure("refused", retryable=False))
    with pytest.raises(ProviderError, match="no"):
        call_with_retry(attempts, Deadline(60, time.clock), time.policy())
    assert (attempts.made, time.slept) == (1, [])


def test_attempts_are_bounded() -> None:
    time = FakeTime()
    attempts = Attempts(time, *[failure() for _ in range(50)])
    with pytest.raises(ProviderError):
        call_with_retry(attempts, Deadline(10_000, time.clock), time.policy(max_attempts=3))
    assert attempts.made == 3


def test_a_failure_after_the_deadline_is_a_timeout() -> None:
    time = FakeTime()
    with pytest.raises(ProviderError) as caught:
        call_with_retry(Attempts(time, failure("connection"), takes_s=9.0), Deadline(5, time.clock), time.policy())
    assert caught.value.kind == "timeout"


class Streams:
    """Plays one list of chunks and errors per attempt."""

    def __init__(self, *plays: list[Step]) -> None:
        self.begun = 0
        self.closed = 0
        self._plays = plays

    def __call__(self) -> Generator[ModelChunk]:
        play = self._plays[self.begun]
        self.begun += 1
        try:
            for step in play:
                if isinstance(step, ProviderError):
                    raise step
                yield step
        finally:
            self.closed += 1


def test_a_stream_that_fails_before_its_first_chunk_is_begun_again() -> None:
    time = FakeTime()
    streams = Streams([failure()], [failure("connection")], [ModelChunk(text="ok"), REPLY])
    chunks = list(stream_with_retry(streams, Deadline(60, time.clock), time.policy()))
    assert [chunk.text for chunk in chunks if chunk.retry is None] == ["ok", ""]
    assert [(chunk.retry.kind, chunk.retry.wait_s) for chunk in chunks if chunk.retry] == [
        ("server", 0.5),
        ("connection", 1.0),
    ]
    assert chunks[0].retry is not None  # told before the wait
    assert (streams.begun, streams.closed) == (3, 3)


@pytest.mark.parametrize("first", [ModelChunk(text="half"), ModelChunk()], ids=["text", "part of a call"])
def test_a_stream_that_showed_output_is_not_begun_again(first: ModelChunk) -> None:
    time = FakeTime()
    streams = Streams([first, failure("connection")], [REPLY])
    with pytest.raises(ProviderError) as caught:
        list(stream_with_retry(streams, Deadline(60, time.clock), time.policy()))
    assert (caught.value.kind, caught.value.retryable, streams.begun) == ("stream", True, 1)


def test_a_final_failure_in_a_stream_stays_final() -> None:
    time = FakeTime()
    streams = Streams([ModelChunk(text="half"), failure("refused", retryable=False)])
    with pytest.raises(ProviderError) as caught:
        list(stream_with_retry(streams, Deadline(60, time.clock), time.policy()))
    assert (caught.value.kind, caught.value.retryable) == ("refused", False)


def test_chunks_without_text_are_not_shown() -> None:
    time = FakeTime()
    streams = Streams([ModelChunk(), ModelChunk(text="a"), ModelChunk(), REPLY])
    assert list(stream_with_retry(streams, Deadline(60, time.clock), time.policy())) == [ModelChunk(text="a"), REPLY]


def test_the_deadline_is_checked_between_chunks() -> None:
    time = FakeTime()
    streams = Streams([ModelChunk(text="a"), ModelChunk(text="b"), REPLY])
    chunks = stream_with_retry(streams, Deadline(5, time.clock), time.policy())
    assert next(chunks).text == "a"
    time.now += 6
    with pytest.raises(ProviderError) as caught:
        next(chunks)
    assert (caught.value.kind, streams.closed) == ("timeout", 1)


def test_an_abandoned_stream_is_closed() -> None:
    time = FakeTime()
    streams = Streams([ModelChunk(text="a"), ModelChunk(text="b"), REPLY])
    chunks = stream_with_retry(streams, Deadline(5, time.clock), time.policy())
    next(chunks)
    assert isinstance(chunks, Generator)
    chunks.close()
    assert streams.closed == 1


def test_statuses_that_are_retried() -> None:
    retried = {status for status in range(400, 600) if from_status("p", status, {}, None).retryable}
    busy = {408, 409, 421, 423, 424, 425, 429, 440, 460, 498, 499}
    assert retried == busy | set(range(500, 600)) - {501, 505, 506, 508, 510, 511}
