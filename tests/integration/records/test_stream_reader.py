"""Many turns' events over two connections: added and removed while the read blocks, cut off, slow, given up."""

from __future__ import annotations

import asyncio
import gc
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
import redis

from brainq.adapters.redis import async_connection, stream_reader
from brainq.adapters.redis import events as follower_module
from brainq.adapters.redis.events import Follower, NoEvents
from brainq.adapters.redis.stream_reader import StreamReader, pause_s
from brainq.errors import SetupError
from tests.support.proxy import Proxy
from tests.support.server import RedisServer
from tests.support.streams import KEYS, SESSION, Tellers, blocked, kill, numbers, readers, reading, take, until

AT_ONCE_S = 1.0  # what does not wait for the end of a block, on a busy machine; a block lasts 2 s


@pytest.fixture
def tellers(redis_server: RedisServer, redis_url: str) -> Tellers:
    return Tellers(redis_server)


@pytest.fixture
def proxy(redis_url: str) -> Iterator[Proxy]:
    with Proxy(("127.0.0.1", int(redis_url.rpartition(":")[2].split("/")[0]))) as made:
        yield made


def through(proxy: Proxy) -> str:
    return f"redis://127.0.0.1:{proxy.port}/0"


def test_many_streams_are_read_by_one_task_over_two_connections(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    turns = [f"t{number}" for number in range(100)]
    tellers.begin(*turns)

    async def run() -> None:
        async with reading(redis_url) as reader:
            threads, tasks = set(threading.enumerate()), len(asyncio.all_tasks())
            following = [asyncio.create_task(take(reader.follow(SESSION, turn, 0), 3)) for turn in turns]
            await until(lambda: reader.streams == len(turns) and blocked(redis_server), "all are read")
            assert len(readers(redis_server)) == 2
            assert len(asyncio.all_tasks()) - tasks == len(turns) + 1  # theirs, and the reader's
            assert set(threading.enumerate()) <= threads
            for _ in range(3):
                for turn in turns:
                    tellers.tell(turn)
            assert await asyncio.gather(*following) == [[1, 2, 3]] * len(turns)
        assert not readers(redis_server)

    asyncio.run(run())
    assert all("wake" not in key for key in redis_server.keys())  # noqa: SIM118 - a command


def test_a_stream_is_added_and_removed_while_the_read_blocks(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    tellers.begin("idle", "new")

    async def run() -> None:
        async with reading(redis_url) as reader:
            idle, new = reader.follow(SESSION, "idle", 0), reader.follow(SESSION, "new", 0)
            waiting = asyncio.create_task(take(idle, 1))
            await until(lambda: blocked(redis_server), "it blocks")
            for number in range(1, 4):
                adding = asyncio.create_task(take(new, 1))
                await until(lambda: reader.streams == 2, "it is added")
                began = time.monotonic()
                tellers.tell("new")
                assert await adding == [number]
                assert time.monotonic() - began < AT_ONCE_S
                new.close()
                assert reader.streams == 1
                new = reader.follow(SESSION, "new", number)
            (own,) = [key for key in redis_server.keys() if "wake" in key]  # noqa: SIM118 - a command
            assert 0 < int(redis_server.command("TTL", own)[0]) <= stream_reader.WAKE_KEPT_S
            tellers.tell("idle")
            assert await waiting == [1]
            await until(lambda: blocked(redis_server), "it blocks")
            began = time.monotonic()
            idle.close()
            await until(lambda: not blocked(redis_server), "nothing is left to read")
            assert time.monotonic() - began < AT_ONCE_S

    asyncio.run(run())


def test_a_reader_that_is_cut_off_goes_on_after_the_last_number(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    count = 25

    async def run() -> None:
        async with reading(redis_url) as reader:
            followers = [reader.follow(SESSION, "t1", 0), reader.follow(SESSION, "t1", 7)]
            following = [asyncio.create_task(_to_the_end(one)) for one in followers]
            for number in range(1, count + 1):
                await until(lambda: blocked(redis_server), "it blocks")
                kill(redis_server, blocked(redis_server)[0])  # fails where none was killed
                tellers.tell("t1")
                await until(lambda number=number: followers[0].after == number, "it was given")
            tellers.end("t1")
            whole = list(range(1, count + 2))
            assert await asyncio.gather(*following) == [whole, whole[7:]]

    tellers.begin("t1")
    asyncio.run(run())


async def _to_the_end(follower: Follower) -> list[int]:
    taken: list[int] = []
    while True:
        events = await follower.next(20.0)
        assert isinstance(events, list)
        taken += numbers(events)
        if events[-1].is_final:
            return taken


def test_the_connection_that_wakes_and_looks_is_cut_off_too(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    tellers.begin("t1", "t2")
    tellers.tell("t2", 3)

    async def run() -> None:
        async with reading(redis_url) as reader:
            waiting = asyncio.create_task(take(reader.follow(SESSION, "t1", 0), 1))
            await until(lambda: blocked(redis_server), "it blocks")
            ids = [line.split("id=")[1].split()[0] for line in readers(redis_server)]
            (asking,) = set(ids) - set(blocked(redis_server))
            kill(redis_server, asking)
            assert await take(reader.follow(SESSION, "t2", 0), 3) == [1, 2, 3]
            tellers.tell("t1")
            assert await waiting == [1]

    asyncio.run(run())


def test_a_slow_consumer_has_a_bounded_buffer_and_misses_nothing(
    redis_url: str, tellers: Tellers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower_module, "MAX_BUFFERED", 20)
    monkeypatch.setattr(follower_module, "READ_BATCH", 30)
    monkeypatch.setattr(stream_reader, "READ_BATCH", 30)
    tellers.begin("t1")

    async def run() -> None:
        async with reading(redis_url) as reader:
            slow, quick = reader.follow(SESSION, "t1", 0), reader.follow(SESSION, "t1", 0)
            following = asyncio.create_task(_to_the_end(quick))
            tellers.tell("t1")
            assert await take(slow, 1) == [1]
            slowly: list[int] = [1]
            for told in range(9, 4 * 80 + 2, 8):
                tellers.tell("t1", 8)
                await until(lambda told=told: quick.after == told, "the quick one has them")
                if told % 80 != 1:
                    continue
                assert slow.after - slowly[-1] <= 30
                assert slow.after < quick.after  # it was left behind, and looks for itself
                slowly += await take(slow, 1)
            tellers.end("t1")
            assert await following == list(range(1, 4 * 80 + 3))
            assert slowly + await _to_the_end(slow) == list(range(1, 4 * 80 + 3))

    asyncio.run(run())


def test_a_consumer_that_is_cancelled_leaves_nothing(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    async def follow(reader: StreamReader, turn: str) -> None:
        follower = reader.follow(SESSION, turn, 0)
        try:
            await take(follower, 100)
        finally:
            follower.close()

    async def run() -> None:
        async with reading(redis_url) as reader:
            for after_s in (0.0, 0.0001, 0.001, 0.005):  # while it looks, joins, or waits
                following = [asyncio.create_task(follow(reader, f"t{number}")) for number in range(10)]
                await asyncio.sleep(after_s)
                for task in following:
                    task.cancel()
                for task in following:
                    with pytest.raises(asyncio.CancelledError):
                        await task
                assert reader.streams == 0
            assert await take(reader.follow(SESSION, "t1", 0), 1) == [1]

    tellers.begin(*[f"t{number}" for number in range(10)])
    tellers.tell("t1")
    asyncio.run(run())


def test_who_follows_is_told_when_redis_stays_away_and_can_go_on_later(
    proxy: Proxy, redis_server: RedisServer, tellers: Tellers
) -> None:
    tellers.begin("t1", "t2")

    async def run() -> None:
        async with reading(through(proxy), patience_s=0.3) as reader:
            follower = reader.follow(SESSION, "t1", 0)
            tellers.tell("t1", 2)
            assert await take(follower, 2) == [1, 2]
            waiting = asyncio.create_task(follower.next())
            await until(lambda: blocked(redis_server), "it blocks")
            proxy.go_away()
            assert proxy.resets
            with pytest.raises(redis.ConnectionError):
                await waiting
            assert reader.streams == 0
            began = time.monotonic()
            with pytest.raises(redis.ConnectionError):  # at once: this one never met Redis
                await reader.follow(SESSION, "t2", 0).next()
            assert time.monotonic() - began < AT_ONCE_S
            with pytest.raises(redis.ConnectionError):
                await follower.next()
            proxy.come_back()
            tellers.tell("t1", 2)
            assert await take(follower, 2) == [3, 4]

    asyncio.run(run())


def test_a_half_open_connection_is_given_up(
    proxy: Proxy, redis_server: RedisServer, tellers: Tellers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "BLOCK_S", 0.2)
    monkeypatch.setattr(async_connection, "ASYNC_SOCKET_TIMEOUT_S", 0.6)
    tellers.begin("t1")

    async def run() -> None:
        async with reading(through(proxy)) as reader:
            follower = reader.follow(SESSION, "t1", 0)
            waiting = asyncio.create_task(take(follower, 1))
            await until(lambda: blocked(redis_server), "it blocks")
            proxy.go_silent()
            proxy.heal()
            tellers.tell("t1")
            assert await waiting == [1]

    asyncio.run(run())


def test_a_turn_that_expires_or_is_over_is_told(
    redis_server: RedisServer, redis_url: str, tellers: Tellers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_reader, "BLOCK_S", 0.05)
    monkeypatch.setattr(stream_reader, "DOUBT_EVERY_S", 0.05)

    async def run() -> None:
        async with reading(redis_url) as reader:
            assert await reader.follow(SESSION, "nobody", 0).next() is NoEvents.UNKNOWN
            tellers.begin("t1", "t2")
            tellers.end("t2")
            over = reader.follow(SESSION, "t2", 0)
            assert await take(over, 1) == [1]
            assert await over.next() is NoEvents.OVER
            assert await reader.follow(SESSION, "t2", 99).next() is NoEvents.OVER
            follower = reader.follow(SESSION, "t1", 0)
            assert await follower.next(0.3) is NoEvents.SILENT  # it stays through some doubts
            waiting = asyncio.create_task(follower.next())
            await until(lambda: blocked(redis_server), "it blocks")
            redis_server.command("DEL", KEYS.turn(SESSION, "t1"))
            assert await waiting is NoEvents.UNKNOWN
            assert await follower.next(0.0) is NoEvents.SILENT
            ahead = reader.follow(SESSION, "t3", 50)  # of a stream that has not come so far
            tellers.begin("t3")
            waiting = asyncio.create_task(ahead.next())
            await until(lambda: reader.streams == 2, "it is read")
            tellers.end("t3")
            assert await waiting is NoEvents.OVER

    asyncio.run(run())


def test_an_event_that_cannot_be_read_fails_its_own_turn(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    async def run() -> None:
        async with reading(redis_url) as reader:
            bad = asyncio.create_task(reader.follow(SESSION, "t1", 0).next())
            good = asyncio.create_task(take(reader.follow(SESSION, "t2", 0), 1))
            await until(lambda: reader.streams == 2, "both are read")
            fields = ("kind", "budget", "at", "yesterday", "data", "{}")
            redis_server.command("XADD", KEYS.turn(SESSION, "t1") + ":events", "1-0", *fields)
            with pytest.raises(ValueError, match="yesterday"):
                await bad
            tellers.tell("t2")
            assert await good == [1]

    tellers.begin("t1", "t2")
    asyncio.run(run())


def test_closing_in_the_middle_ends_every_follower(redis_server: RedisServer, redis_url: str, tellers: Tellers) -> None:
    tellers.begin("t1", "t2")
    tellers.tell("t2", 2)

    async def run() -> None:
        async with reading(redis_url) as reader:
            behind, live = reader.follow(SESSION, "t2", 0), reader.follow(SESSION, "t1", 0)
            waiting = asyncio.create_task(live.next())
            await until(lambda: blocked(redis_server), "it blocks")
            looking = asyncio.create_task(behind.next())
            await reader.close()
            with pytest.raises(SetupError, match="was closed"):
                await waiting
            with suppress(SetupError):
                assert numbers(await looking) == [1, 2]  # pyright: ignore[reportArgumentType]
            with pytest.raises(SetupError, match="was closed"):
                await behind.next()
            with pytest.raises(SetupError, match="was closed"):
                reader.follow(SESSION, "t1", 0)
            await reader.close()
        assert not readers(redis_server)

    asyncio.run(run())


def test_a_loop_that_ends_without_a_close_leaves_no_connection_behind(
    redis_server: RedisServer, redis_url: str, tellers: Tellers
) -> None:
    tellers.begin("t1")
    kept: list[StreamReader] = []

    async def run() -> None:
        kept.append(StreamReader(redis_url, KEYS))
        waiting = asyncio.create_task(kept[0].follow(SESSION, "t1", 0).next())
        await until(lambda: blocked(redis_server), "it blocks")
        assert not waiting.done()

    asyncio.run(run())
    gc.collect()  # a connection that was not closed warns here, and a warning is an error
    assert not readers(redis_server)


def test_events_of_many_streams_gather_between_reads() -> None:
    assert pause_s(500, 0) == 0
    assert pause_s(1, 1) < 0.001
    assert pause_s(500, 1) < pause_s(500, 100) < pause_s(500, 500) == pause_s(5000, 5000) == 0.02


@pytest.mark.parametrize("end", [ValueError, SystemExit, MemoryError])
def test_a_reader_that_fails_anywhere_reads_on(
    redis_url: str, tellers: Tellers, monkeypatch: pytest.MonkeyPatch, end: type[BaseException]
) -> None:
    """Also where it is not reading: while it tells its followers of a failure."""
    tellers.begin("t1")
    failed: list[BaseException] = []

    async def fail(reader: StreamReader, failure: Exception) -> None:
        failed.append(failure)
        raise end

    async def run() -> None:
        async with reading(redis_url) as reader:
            follower = reader.follow(SESSION, "t1", 0)
            taking = asyncio.create_task(take(follower, 2))
            await until(lambda: reader.streams == 1, "it is read")
            with monkeypatch.context() as patch:
                patch.setattr(StreamReader, "_failed", fail)
                patch.setattr(StreamReader, "_read", fail_once)
                tellers.tell("t1")
                await until(lambda: failed, "it failed")
            tellers.tell("t1")
            assert await asyncio.wait_for(taking, 60) == [1, 2]

    async def fail_once(reader: StreamReader) -> None:
        raise OSError("of a read")

    asyncio.run(run())
