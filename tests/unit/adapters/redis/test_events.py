"""A follower gives each event once and in order, whatever the reader and its own looks find, and when."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from brainq.adapters.redis import events as module
from brainq.adapters.redis.events import MAX_BUFFERED, Follower, NoEvents
from brainq.adapters.redis.stream_reader import StreamState
from brainq.contracts.typed_events import Event, make_event


def event(number: int, last: int) -> Event:
    return make_event(number, "result" if number == last else "budget", 1, {})


def row(number: int, last: int) -> tuple[str, list[str]]:
    kind = "result" if number == last else "budget"
    return (f"{number}-0", ["kind", kind, "at", "1", "data", "{}"])


class Stream:
    """A stream of `last` events, of which `told` are out; and a reader of it, which reads when it is told to."""

    patience_s = 0.0

    def __init__(self, last: int) -> None:
        self.last = last
        self.told = 0
        self.live: list[Follower] = []
        self.reads: list[tuple[int, int]] = []

    def add_follower(self, follower: Follower) -> None:
        self.live.append(follower)

    def remove_follower(self, follower: Follower) -> None:
        self.live.remove(follower)

    async def look(self, follower: Follower, patience_s: float) -> StreamState:
        end = min(self.told, follower.after + module.READ_BATCH)
        rows = [row(number, self.last) for number in range(follower.after + 1, end + 1)]
        return StreamState(True, self.told == self.last, rows)

    def follow(self, after: int) -> Follower:
        return Follower(cast(Any, self), "s1", "t1", after)

    def begin_read(self) -> None:
        """A read above what the live ones have; it will find what is out when it ends."""
        if self.live:
            self.reads.append((min(one.after for one in self.live), 0))

    def end_read(self) -> None:
        if self.reads:
            after, _ = self.reads.pop(0)
            found = [event(number, self.last) for number in range(after + 1, self.told + 1)]
            for one in list(self.live):
                if found:
                    one.feed(after, found)


async def take(follower: Follower) -> list[Event]:
    said = await follower.next(0.0)
    assert said is not NoEvents.UNKNOWN
    return said if isinstance(said, list) else []


STEPS = st.lists(st.sampled_from(["tell", "begin", "end", "take", "drop", "doubt", "fail"]), min_size=1, max_size=80)


@given(st.integers(1, 30), st.integers(0, 12), STEPS)
def test_drops_at_any_event_and_reads_at_any_time_give_the_same_whole(last: int, most: int, steps: list[str]) -> None:
    async def run() -> None:
        stream, taken = Stream(last), list[int]()
        follower = stream.follow(0)
        for step in [*steps, *["tell"] * last, "take", *["begin", "end", "take"] * last]:
            if taken and taken[-1] == last:
                break
            match step:
                case "tell":
                    stream.told = min(last, stream.told + 1)
                case "begin":
                    stream.begin_read()
                case "end":
                    stream.end_read()
                case "take":
                    taken += [one.seq for one in await take(follower)]
                case "doubt":
                    follower.check_stream()
                case "fail":
                    follower.fail(ConnectionError("away"))
                    try:
                        taken += [one.seq for one in await take(follower)]
                        taken += [one.seq for one in await take(follower)]
                    except ConnectionError:
                        pass
                case _:  # whoever read it goes away; another goes on after the last number
                    follower.close()
                    follower = stream.follow(taken[-1] if taken else 0)
        assert taken == list(range(1, last + 1))
        follower.close()
        assert not stream.live

    bound, page = module.MAX_BUFFERED, module.READ_BATCH
    module.MAX_BUFFERED, module.READ_BATCH = most, max(1, most // 2)
    try:
        asyncio.run(run())
    finally:
        module.MAX_BUFFERED, module.READ_BATCH = bound, page


def test_one_that_joined_while_a_read_was_under_way_takes_nothing_with_a_gap_before_it() -> None:
    async def run() -> None:
        stream = Stream(9)
        stream.told = 6
        first = stream.follow(6)
        assert await first.next(0.0) is NoEvents.SILENT
        stream.begin_read()  # above 6
        late = stream.follow(3)
        late_events = await late.next(0.0)
        assert [one.seq for one in cast("list[Event]", late_events)] == [4, 5, 6]
        behind = stream.follow(0)
        stream.told = 3
        assert [one.seq for one in cast("list[Event]", await behind.next(0.0))] == [1, 2, 3]
        stream.told = 8
        stream.end_read()
        assert (first.after, late.after, behind.after) == (8, 8, 3)

    asyncio.run(run())


def test_what_is_not_taken_is_not_piled_up() -> None:
    async def run() -> None:
        stream = Stream(10_000)
        follower = stream.follow(0)
        assert await follower.next(0.0) is NoEvents.SILENT
        for number in range(1, 5_000):
            stream.told = number
            stream.begin_read()
            stream.end_read()
        assert follower.after == MAX_BUFFERED
        assert not stream.live
        taken = 0
        while taken < 4_999:
            taken += len(await take(follower))
        assert taken == follower.after == 4_999
        assert stream.live == [follower]

    asyncio.run(run())
