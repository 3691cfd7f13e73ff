"""Clients over HTTP whose gateway is killed in mid-stream and started again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from brainq import AsyncHttpClient, Event, HttpClient, TurnResult
from brainq.app.devserver.ports import free_port
from tests.integration.gateway.test_processes import environment
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayProcess
from tests.support.pump import Pump
from tests.support.wait import wait_until

PATIENCE_S = 240.0


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps()


class Follower(threading.Thread):
    """A reader of a turn's events and result in a thread. `failure` is why it ended early."""

    def __init__(self, follow: Callable[[list[Event]], TurnResult]) -> None:
        super().__init__(name="follower-of-a-test")
        self.events: list[Event] = []
        self.result: TurnResult | None = None
        self.failure: BaseException | None = None
        self._follow = follow
        self.start()

    def run(self) -> None:
        try:
            self.result = self._follow(self.events)
        except BaseException as failure:
            self.failure = failure


def follow(url: str, turn_id: str, seen: list[Event]) -> TurnResult:
    with HttpClient(url, retry_s=PATIENCE_S) as client:
        handle = client.handle(turn_id)
        for event in handle.events():
            seen.append(event)  # each as it comes
        return handle.result()


def follow_on_a_loop(url: str, turn_id: str, seen: list[Event]) -> TurnResult:
    async def talk() -> TurnResult:
        async with AsyncHttpClient(url, retry_s=PATIENCE_S) as client:
            handle = await client.handle(turn_id)
            async for event in handle.events():
                seen.append(event)
            return await handle.result()

    return asyncio.run(talk())


def submit_once(url: str, seen: list[Event]) -> TurnResult:
    with HttpClient(url, retry_s=PATIENCE_S) as client:
        return client.run("outage", script(final="accepted"))


def test_every_event_comes_once_and_in_order_across_gateways_that_are_killed(pump: Pump, tmp_path: Path) -> None:
    port = free_port()
    handles = [
        pump.submit(f"s{number}", script([("read", {"name": "a"}), ("write", {"name": "b"})], final="so 😀"))
        for number in range(2)
    ]
    with GatewayProcess(tmp_path, environment(pump), port=port) as first:
        url, readers = first.url, list[tuple[Any, Follower]]()
        for handle in handles:
            for way in (follow, follow_on_a_loop):
                readers.append((handle, Follower(lambda seen, w=way, h=handle: w(url, h.turn_id, seen))))
        wait_until(lambda: all(reader.events for _, reader in readers), "all streams have begun", 120)
        pump.drain("brainq.turns")  # each is in the middle of its first step's calls
        first.kill()
    submitted = Follower(lambda seen: submit_once(url, seen))  # while nobody listens
    seen_before = [len(reader.events) for _, reader in readers]
    with GatewayProcess(tmp_path, environment(pump), port=port):
        for handle in handles:
            pump.finish(handle)
        wait_until(lambda: bool(pump.drain()) or not submitted.is_alive(), "the submit has come", 120)
        while submitted.is_alive():
            pump.drain()
            submitted.join(0.02)
        for _, reader in readers:
            reader.join(120)
    for (handle, reader), before in zip(readers, seen_before, strict=True):
        assert reader.failure is None, reader.failure
        assert reader.events == list(handle.events())
        assert 0 < before < len(reader.events), "it was cut off in the middle"
        assert reader.result == handle.result(timeout_s=0)
        assert len(diary.notes("start", tool="write", turn=handle.turn_id)) == 1
    assert submitted.failure is None, submitted.failure
    assert submitted.result is not None
    assert submitted.result.text == "accepted"
    assert len(pump.client.turns(session="outage")) == 1
