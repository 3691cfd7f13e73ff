"""Gateways as processes: killed in the middle of streams, stopped, and refused where others reach them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from brainq.access import Tokens, Verb
from brainq.devserver.probe import free_port
from brainq.error_kinds import Exit
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.gateways import ROOT, GatewayProcess
from tests.support.pump import Pump
from tests.support.sse import EventReader
from tests.support.wait import wait_until

STREAMS, TURNS = 50, 5


@pytest.fixture
def pump(pumps: Callable[..., Pump]) -> Pump:
    return pumps()


def environment(pump: Pump) -> dict[str, str]:
    assert pump.settings.redis_url is not None
    return {
        "BRAINQ_APP": "tests.support.brains.obedient:brain",
        "BRAINQ_REDIS_URL": pump.settings.redis_url.get_secret_value(),
        "BRAINQ_SQL_URL": pump.settings.sql_url.get_secret_value(),
        "BRAINQ_LOG_LEVEL": "warning",
    }


async def follow(readers: dict[int, EventReader], urls: list[str], base: str, alive: asyncio.Event) -> int:
    """Read every stream that is not over from `base`, each from what it saw last; how many were cut off."""

    async def one(number: int, http: httpx.AsyncClient) -> bool:
        reader = readers[number]
        headers = {"Last-Event-ID": reader.last_id} if reader.last_id else {}
        try:
            async with http.stream("GET", urls[number % TURNS], headers=headers) as stream:
                assert stream.status_code == 200
                async for piece in stream.aiter_raw():
                    reader.feed(piece)
                    if all(reader.events for reader in readers.values()):
                        alive.set()
        except httpx.HTTPError:
            pass
        reader.lost()
        return not reader.is_over

    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=base, timeout=60, limits=limits) as http:
        open_ones = [number for number in readers if not readers[number].is_over]
        return sum(await asyncio.gather(*(one(number, http) for number in open_ones)))


def test_fifty_streams_outlive_the_gateway_that_is_killed(pump: Pump, tmp_path: Path) -> None:
    given = environment(pump)
    handles = [
        pump.submit(f"s{number}", script([("read", {"name": "a"}), ("write", {"name": "b"})], final="so 😀"))
        for number in range(TURNS)
    ]
    urls = [f"/v1/turns/{handle.turn_id}/events" for handle in handles]
    readers = {number: EventReader() for number in range(STREAMS)}

    async def run() -> int:
        alive = asyncio.Event()
        with GatewayProcess(tmp_path, given) as first, GatewayProcess(tmp_path, given) as second:
            streaming = asyncio.ensure_future(follow(readers, urls, first.url, alive))
            await asyncio.wait_for(alive.wait(), 60)
            await asyncio.to_thread(
                pump.drain, "brainq.turns"
            )  # each in the middle of its first step's calls
            await asyncio.to_thread(first.kill)
            cut_off = await streaming
            finishing = asyncio.to_thread(lambda: [pump.finish(handle) for handle in handles])
            left, _ = await asyncio.gather(follow(readers, urls, second.url, alive), finishing)
            assert left == 0
        return cut_off

    assert asyncio.run(run()) == STREAMS
    for number, reader in readers.items():
        whole = [event.model_dump(mode="json") for event in handles[number % TURNS].events()]
        assert reader.events == whole, number
    for handle in handles:
        assert len(diary.notes("start", tool="write", turn=handle.turn_id)) == 1, "nothing ran twice"


def test_sigterm_ends_a_stream_with_a_word_and_the_process_with_0(pump: Pump, tmp_path: Path) -> None:
    handle = pump.submit("s1", script(final="x"))
    reader = EventReader()
    with GatewayProcess(tmp_path, environment(pump)) as gateway:
        assert gateway.said.startswith(f"brainq serves {gateway.url}; ")
        with httpx.stream("GET", f"{gateway.url}/v1/turns/{handle.turn_id}/events", timeout=30) as stream:
            pieces = stream.iter_raw()
            reader.feed(next(pieces))
            gateway.process.send_signal(signal.SIGTERM)
            for piece in pieces:
                reader.feed(piece)
        assert gateway.process.wait(30) == 0
    assert reader.retry_ms
    assert not reader.is_over


def test_a_gateway_ends_with_who_started_it(pump: Pump, tmp_path: Path) -> None:
    theirs, ours = os.pipe()
    os.set_inheritable(theirs, True)
    given = {**environment(pump), "BRAINQ_OWNER_FD": str(theirs), "BRAINQ_HTTP_PORT": str(free_port())}
    ready = tmp_path / "gateway.ready"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.gateway"],
            cwd=ROOT,
            env={**os.environ, **given, "BRAINQ_READY_FILE": str(ready)},
            stdout=log,
            stderr=log,
            pass_fds=(theirs,),
        )
    os.close(theirs)
    try:
        wait_until(ready.exists, "it is ready")
        os.close(ours)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()


def brainq(arguments: list[str], given: dict[str, str], directory: Path) -> Any:
    command = [sys.executable, "-m", "brainq.cli.main", *arguments]
    told = {**os.environ, **given, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    return subprocess.run(command, cwd=directory, env=told, capture_output=True, text=True, timeout=100)


def test_where_others_reach_it_tokens_come_first(pump: Pump, tmp_path: Path) -> None:
    given = environment(pump)
    refused = brainq(["serve", "--host", "0.0.0.0", "--port", str(free_port())], given, tmp_path)
    assert refused.returncode == Exit.SETUP
    assert "brainq token create" in refused.stderr
    assert "Traceback" not in refused.stderr
    token = Tokens(pump.wiring.store).create("web", ["*"], [Verb.READ])
    with GatewayProcess(tmp_path, {**given, "BRAINQ_HTTP_HOST": "0.0.0.0"}) as gateway:
        assert "callers bring a token" in gateway.said
        assert httpx.get(f"{gateway.url}/v1/approvals").status_code == 401
        bearer = {"Authorization": f"Bearer {token.text}"}
        assert httpx.get(f"{gateway.url}/v1/approvals", headers=bearer).status_code == 200
