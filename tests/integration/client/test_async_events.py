"""AsyncClient follows turns: the same events, results and errors as Client, without a thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from brainq import AsyncClient, AsyncTurnHandle
from brainq.client.async_handle import THREADS_PER_KIND
from brainq.client.connection import wiring_of
from brainq.contracts.event import TurnEvent
from brainq.errors import ResultTimeout, SetupError, TurnNotFound, TurnRejected, Unreachable
from brainq.runtime.settings.deployment import Settings
from tests.support.brains import obedient
from tests.support.brains.obedient import script
from tests.support.proxy import Proxy
from tests.support.pump import Pump
from tests.support.server import RedisServer
from tests.support.streams import blocked, kill, readers, until

GONE = "redis://127.0.0.1:1/0"  # nobody listens there
TWO_CALLS = script([("read", {"name": "a"}), ("read", {"name": "b"})], final="some words of an answer")


def run(settings: Settings, talk: Callable[[AsyncClient], Coroutine[Any, Any, None]], *, redis_url: str = "") -> None:
    """On a loop of its own, with a client; fails when it leaves a task, or a thread of the client's, behind."""

    async def main() -> None:
        async with AsyncClient(settings, obedient.brain, redis_url=redis_url) as client:
            await talk(client)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("brainq-acts")]
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("brainq-looks")]


async def numbers(events: AsyncIterator[TurnEvent]) -> list[int]:
    return [event.seq async for event in events]


def ended(pump: Pump, message: str = TWO_CALLS) -> str:
    """The id of a turn that ran to its end."""
    handle = pump.submit("s1", message)
    pump.finish(handle)
    return handle.turn_id


def expire(pump: Pump, turn_id: str) -> None:
    keys: Any = pump.wiring.state.redis.keys(f"bq:{{s1}}:t:{turn_id}*")
    pump.wiring.state.redis.delete(*keys)


def test_many_turns_are_followed_as_they_run_without_a_thread_of_their_own(pump: Pump) -> None:
    async def talk(client: AsyncClient) -> None:
        handles = [await client.submit(f"s{n}", script(final=f"answer {n}")) for n in range(20)]
        threads = set(threading.enumerate())
        following = [asyncio.create_task(numbers(handle.events())) for handle in handles]
        results = [asyncio.create_task(handle.result(timeout_s=60)) for handle in handles]
        await until(lambda: wiring_of(client._sync).streams.reader.streams == 20, "all are read")  # pyright: ignore[reportPrivateUsage]
        assert set(threading.enumerate()) <= threads
        await asyncio.to_thread(pump.drain)
        assert [(await result).text for result in results] == [f"answer {n}" for n in range(20)]
        for handle, seen in zip(handles, await asyncio.gather(*following), strict=True):
            sync = [event.seq for event in pump.client.handle(handle.turn_id).events()]
            assert seen == sync == list(range(1, len(sync) + 1))

    run(pump.settings, talk)


def test_who_drops_at_any_event_and_resumes_holds_the_same_whole(pump: Pump, redis_server: RedisServer) -> None:
    """Each takes one event, goes away, and comes again; and the reader is cut off while the turn runs."""
    whole: list[TurnEvent] = []
    pieces: list[TurnEvent] = []
    killed: list[str] = []

    async def talk(client: AsyncClient) -> None:
        handle = await client.submit("s1", TWO_CALLS)

        async def piecewise() -> None:
            while not (pieces and pieces[-1].is_final):
                async for event in handle.events(after=pieces[-1].seq if pieces else 0):
                    pieces.append(event)
                    break

        async def at_once() -> None:
            async for event in handle.events():
                whole.append(event)

        following = asyncio.gather(piecewise(), at_once())
        while (bell := pump.take()) is not None:
            await until(lambda: blocked(redis_server), "it blocks")
            kill(redis_server, blocked(redis_server)[0])
            killed.append(bell.task)
            await asyncio.to_thread(pump.answer, bell)
        await asyncio.wait_for(following, 60)

    run(pump.settings, talk)
    assert len(killed) > 3
    assert pieces == whole
    assert [event.seq for event in whole] == list(range(1, len(whole) + 1))
    assert whole == list(pump.client.handle(pump.client.session("s1").history()[0].turn_id).events())


def test_a_consumer_that_breaks_off_or_is_cancelled_leaves_nothing(pump: Pump, redis_server: RedisServer) -> None:
    async def talk(client: AsyncClient) -> None:
        handle = await client.submit("s1", TWO_CALLS)
        reader = wiring_of(client._sync).streams.reader  # pyright: ignore[reportPrivateUsage]
        async for _ in handle.events():
            break
        await until(lambda: not reader.streams, "who broke off is gone")
        waiting = [asyncio.create_task(numbers(handle.events())), asyncio.create_task(handle.result())]
        await until(lambda: reader.streams and blocked(redis_server), "they wait")
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting)
        assert all(task.cancelled() for task in waiting)
        assert not reader.streams
        await until(lambda: not blocked(redis_server), "and the read ends")

    run(pump.settings, talk)
    assert not readers(redis_server)


def test_an_ended_turn_gives_what_is_left_and_ends(pump: Pump) -> None:
    turn_id = ended(pump)
    sync = pump.client.handle(turn_id)
    whole = [event.seq for event in sync.events()]
    for after in (whole[-1], whole[-1] + 9):
        assert list(sync.events(after)) == []

    async def talk(client: AsyncClient) -> None:
        handle = await client.handle(turn_id)
        for after in range(whole[-1] + 2):
            assert await numbers(handle.events(after)) == whole[after:]
        assert await handle.result(timeout_s=0) == sync.result(timeout_s=1)

    run(pump.settings, talk)


def test_a_turn_that_has_expired_is_known_from_sql(pump: Pump) -> None:
    turn_id = ended(pump)
    result = pump.client.handle(turn_id).result(timeout_s=1)
    expire(pump, turn_id)

    async def talk(client: AsyncClient) -> None:
        handle = await client.handle(turn_id)
        assert await numbers(handle.events(3)) == []
        assert await handle.result(timeout_s=0) == result

    run(pump.settings, talk)


def test_a_turn_that_redis_does_not_know_yet_is_waited_for(pump: Pump) -> None:
    handle = pump.submit("s1", script(final="late"))
    keys: Any = pump.wiring.state.redis.keys("bq:{s1}*")
    pump.wiring.state.redis.delete(*keys)

    async def talk(client: AsyncClient) -> None:
        late = await client.handle(handle.turn_id)
        with pytest.raises(ResultTimeout, match="no event for"):
            await numbers(late.events(idle_s=0.05))
        waiting = asyncio.create_task(late.result(timeout_s=60))
        following = asyncio.create_task(numbers(late.events()))
        await until(lambda: wiring_of(client._sync).streams.reader.streams, "they wait")  # pyright: ignore[reportPrivateUsage]
        await asyncio.to_thread(pump.finish, handle)
        assert (await waiting).text == "late"
        assert (await following)[0] == 1

    run(pump.settings, talk)


def test_a_turn_that_nobody_knows_or_that_was_refused_is_told(pump: Pump) -> None:
    turn_id = ended(pump, script())
    expire(pump, turn_id)

    async def talk(client: AsyncClient) -> None:
        handle = await client.handle(turn_id)
        for sql, error in (
            ("UPDATE turns SET state = 'rejected', reject_reason = 'too long'", TurnRejected),
            ("DELETE FROM turns", TurnNotFound),
        ):
            with pump.wiring.store.engine.begin() as connection:
                connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
                connection.exec_driver_sql(sql)
            with pytest.raises(error):
                await numbers(handle.events())
            with pytest.raises(error):
                await handle.result()

    run(pump.settings, talk)


def test_waiting_ends_when_it_should(pump: Pump) -> None:
    async def talk(client: AsyncClient) -> None:
        handle = await client.submit("s1", TWO_CALLS)
        for timeout_s in (0, 0.05):
            with pytest.raises(ResultTimeout, match="has no result after"):
                await handle.result(timeout_s=timeout_s)
            seen: list[int] = []

            async def follow(timeout_s: float = timeout_s, seen: list[int] = seen) -> None:
                async for event in handle.events(timeout_s=timeout_s):
                    seen.append(event.seq)

            with pytest.raises(ResultTimeout, match="has no result after"):
                await follow()
            assert seen == [1]  # what is there comes, whatever the limit

    run(pump.settings, talk)


def test_redis_is_away(pump: Pump) -> None:
    turn_id = pump.submit("s1", TWO_CALLS).turn_id

    async def talk(client: AsyncClient) -> None:
        handle = await client.handle(turn_id)
        for wait in (handle.result(), handle.result(timeout_s=5), numbers(handle.events())):
            with pytest.raises(Unreachable, match="BRAINQ_REDIS_URL"):
                await asyncio.wait_for(wait, 5)
        with pytest.raises(Unreachable, match="request_key"):
            await client.submit("s1", "Go.")

    run(pump.settings, talk, redis_url=GONE)


def test_redis_goes_away_while_turns_are_followed(pump: Pump, redis_server: RedisServer) -> None:
    handle = pump.submit("s1", TWO_CALLS)

    async def talk(client: AsyncClient) -> None:
        reader = wiring_of(client._sync).streams.reader  # pyright: ignore[reportPrivateUsage]
        reader.patience_s = 0.2
        twin = await client.handle(handle.turn_id)
        seen: list[int] = []

        async def follow() -> None:
            async for event in twin.events(after=seen[-1] if seen else 0):
                seen.append(event.seq)

        following, waiting = asyncio.create_task(follow()), asyncio.create_task(twin.result())
        await until(lambda: seen and blocked(redis_server), "they wait")
        proxy.go_away()
        for task in (following, waiting):
            with pytest.raises(Unreachable, match="BRAINQ_REDIS_URL"):
                await task
        proxy.come_back()
        await asyncio.to_thread(pump.finish, handle)
        await follow()
        assert seen == [event.seq for event in handle.events()]
        assert (await twin.result()).text == "some words of an answer"

    with Proxy(("127.0.0.1", int(redis_server.url.rpartition(":")[2].split("/")[0]))) as proxy:
        run(pump.settings, talk, redis_url=f"redis://127.0.0.1:{proxy.port}/0")


def test_a_client_that_is_closed_in_the_middle_ends_what_waits(pump: Pump) -> None:
    async def talk(client: AsyncClient) -> None:
        handle = await client.submit("s1", TWO_CALLS)
        waiting = [asyncio.create_task(numbers(handle.events())), asyncio.create_task(handle.result())]
        await until(lambda: wiring_of(client._sync).streams.reader.streams, "they wait")  # pyright: ignore[reportPrivateUsage]
        await client.close()
        for task in waiting:
            with pytest.raises(SetupError, match="was closed"):
                await task
        for again in (handle.result(), numbers(handle.events()), handle.snapshot(), handle.cancel()):
            with pytest.raises(SetupError, match="was closed"):
                await again

    run(pump.settings, talk)


def test_a_client_serves_one_loop_after_another(pump: Pump, redis_server: RedisServer) -> None:
    client = AsyncClient(pump.settings, obedient.brain)
    handle = asyncio.run(client.submit("s1", script(final="twice")))

    async def follow() -> str:
        await numbers(handle.events())
        return (await handle.result(timeout_s=60)).text

    async def too_early(handle: AsyncTurnHandle) -> None:
        with pytest.raises(ResultTimeout):
            await handle.result(timeout_s=0.05)

    asyncio.run(too_early(handle))
    assert not readers(redis_server)
    pump.drain()
    assert asyncio.run(follow()) == "twice"
    assert not readers(redis_server)
    asyncio.run(client.close())


def test_verbs_that_look_keep_none_that_acts_waiting(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQL hangs for whoever lists approvals; turns are submitted and cancelled all the same."""
    let_go, begun = threading.Event(), threading.Semaphore(0)

    async def talk(client: AsyncClient) -> None:
        def hang(*_: Any, **__: Any) -> tuple[()]:
            begun.release()
            assert let_go.wait(60)
            return ()

        monkeypatch.setattr(wiring_of(client._sync).people.approvals, "list", hang)  # pyright: ignore[reportPrivateUsage]
        listing = [asyncio.create_task(client.approvals()) for _ in range(2 * THREADS_PER_KIND)]
        try:
            for _ in range(THREADS_PER_KIND):
                assert await asyncio.to_thread(begun.acquire, timeout=20)
            handle = await asyncio.wait_for(client.submit("s1", script()), 20)
            assert await asyncio.wait_for(handle.cancel(), 20) == "requested"
            assert not begun.acquire(blocking=False)  # no more than so many at once
        finally:
            let_go.set()
        assert await asyncio.gather(*listing) == [()] * 2 * THREADS_PER_KIND

    run(pump.settings, talk)
