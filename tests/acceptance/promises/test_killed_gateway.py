"""A gateway killed in the middle of 50 streams: every client resumes and holds the same whole; nothing ran twice."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq import AsyncClient
from brainq.client.handle import TurnHandle
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayProcess
from tests.support.sse import EventReader
from tests.support.stream_readers import read_on
from tests.support.world import World

STREAMS = 50
WORDS = "one two three four five six seven eight nine ten 😀 " * 8
GATE = "killed"

pytestmark = pytest.mark.full


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Pools in which all turns can be at work at once."""
    made = World(tmp_path / "world", threads={"coordinator": 64, "parallel": 32})
    try:
        yield made.start()
    finally:
        made.stop()


def said_or_called(number: int) -> str:
    """Half of the turns are in the middle of their text when the gateway dies, half in the middle of a call."""
    write = ("write", {"name": f"w{number}"})
    if number % 2:
        return script([("read", {"name": "r", "gate": GATE})], [write], final="so 😀")
    return script([("read", {"name": "r"}), write], final=WORDS, words_s=0.05, words_gate=GATE)


def is_in_the_middle(number: int, reader: EventReader) -> bool:
    kinds = Counter(event["kind"] for event in reader.events)
    if number % 2:
        return kinds["call.running"] == 1 and not kinds["call.ended"]
    return kinds["text.delta"] >= 2 and not kinds["turn.closing"]


class ResponseReader(EventReader):
    """Reads events of a response, which have their number in themselves."""

    @property
    def is_over(self) -> bool:
        return bool(self.events) and self.events[-1]["type"] == "response.completed"


def by_starting_after(path: str, reader: EventReader) -> tuple[str, dict[str, str]]:
    if not reader.events:
        return path, {}
    return f"{path}&starting_after={reader.events[-1]['sequence_number']}", {}


def test_every_client_resumes_and_holds_the_same_whole(world: World, tmp_path: Path) -> None:
    handles = [world.client.submit(f"s{number}", said_or_called(number)) for number in range(STREAMS)]
    readers = {f"/v1/turns/{handle.turn_id}/events": EventReader() for handle in handles}

    def are_in_the_middle() -> bool:
        return all(is_in_the_middle(number, reader) for number, reader in enumerate(readers.values()))

    async def never_cut(client: AsyncClient, turn_id: str) -> list[Any]:
        return [event.model_dump(mode="json") async for event in (await client.handle(turn_id)).events()]

    async def run() -> list[list[Any]]:
        began = asyncio.Event()

        def look() -> None:
            if are_in_the_middle():
                began.set()

        async with AsyncClient(world.settings, world.wiring.brains) as client:
            whole = [asyncio.create_task(never_cut(client, handle.turn_id)) for handle in handles]
            with GatewayProcess(tmp_path, world.environment) as first:
                streaming = asyncio.ensure_future(read_on(readers, first.url, each=look))
                await asyncio.wait_for(began.wait(), 100)
                await asyncio.to_thread(first.kill)
                assert await streaming == STREAMS, "each was cut off"
            assert are_in_the_middle()
            diary.open_gate(GATE)
            with GatewayProcess(tmp_path, world.environment) as second:
                assert await read_on(readers, second.url) == 0
            return await asyncio.gather(*whole)

    wholes = asyncio.run(run())
    for handle, reader, whole in zip(handles, readers.values(), wholes, strict=True):
        assert reader.events == whole
        assert [event["seq"] for event in whole] == list(range(1, len(whole) + 1))
        assert handle.result(timeout_s=60).ending == "completed"
        assert started(handle) == {"read": 1, "write": 1}, "nothing ran twice"


def started(handle: TurnHandle) -> Counter[str]:
    return Counter(note["tool"] for note in diary.notes("start", turn=handle.turn_id))


def test_every_client_of_responses_resumes_by_its_number(world: World, tmp_path: Path) -> None:
    """The same over OpenAI's wire, whose events have numbers of their own."""
    handles = [world.client.submit(f"s{number}", said_or_called(2 * number)) for number in range(STREAMS)]
    paths = [f"/v1/responses/resp_{handle.turn_id}?stream=true" for handle in handles]
    readers: dict[str, EventReader] = {path: ResponseReader() for path in paths}
    wholes: dict[str, EventReader] = {path: ResponseReader() for path in paths}

    def are_in_the_middle() -> bool:
        return all(len(reader.events) >= 5 and not reader.is_over for reader in readers.values())

    async def run() -> None:
        began = asyncio.Event()

        def look() -> None:
            if are_in_the_middle():
                began.set()

        with GatewayProcess(tmp_path, world.environment) as first:
            streaming = asyncio.ensure_future(read_on(readers, first.url, each=look, again=by_starting_after))
            await asyncio.wait_for(began.wait(), 100)
            await asyncio.to_thread(first.kill)
            assert await streaming == STREAMS, "each was cut off"
        assert are_in_the_middle()
        diary.open_gate(GATE)
        with GatewayProcess(tmp_path, world.environment) as second:
            assert await read_on(readers, second.url, again=by_starting_after) == 0
            assert await read_on(wholes, second.url) == 0

    asyncio.run(run())
    for handle, path in zip(handles, paths, strict=True):
        assert readers[path].events == wholes[path].events
        numbers = [event["sequence_number"] for event in readers[path].events]
        assert numbers == list(range(len(numbers)))
        said = [event["delta"] for event in readers[path].events if event["type"].endswith("text.delta")]
        assert "".join(said) == handle.result(timeout_s=60).text
        assert started(handle) == {"read": 1, "write": 1}, "nothing ran twice"
