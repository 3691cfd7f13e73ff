"""Gateways as processes: killed in the middle of streams, stopped, and refused where others reach them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from brainq.app.devserver.ports import free_port, listener_at
from brainq.cli.commands.run import gateway_command, require_http
from brainq.cli.main import app
from brainq.errors import SetupError
from tests.support.brains import diary
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayProcess, GatewayThread
from tests.support.pump import Pump
from tests.support.sse import EventReader
from tests.support.stream_readers import read_on
from tests.support.wait import wait_until

TURNS, READERS = 4, 2


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


def test_streams_outlive_the_gateway_that_is_killed(pump: Pump, tmp_path: Path) -> None:
    """A sample; tests/acceptance/promises/test_killed_gateway.py has fifty turns in real pools."""
    handles = [
        pump.submit(f"s{number}", script([("read", {"name": "a"}), ("write", {"name": "b"})], final="so 😀"))
        for number in range(TURNS)
    ]
    readers = {
        f"/v1/turns/{handle.turn_id}/events?reader={number}": EventReader()
        for handle in handles
        for number in range(READERS)
    }

    async def run() -> int:
        all_began = asyncio.Event()

        def look() -> None:
            if all(reader.events for reader in readers.values()):
                all_began.set()

        with GatewayProcess(tmp_path, environment(pump)) as first:
            streaming = asyncio.ensure_future(read_on(readers, first.url, each=look))
            await asyncio.wait_for(all_began.wait(), 60)
            await asyncio.to_thread(pump.drain, "brainq.turns")  # each in the middle of its first step's calls
            await asyncio.to_thread(first.kill)
            cut_off = await streaming
        with GatewayThread(pump.settings, pump.wiring.brains) as second:
            finishing = asyncio.to_thread(lambda: [pump.finish(handle) for handle in handles])
            left, _ = await asyncio.gather(read_on(readers, second.url), finishing)
            assert left == 0
        return cut_off

    assert asyncio.run(run()) == len(readers) == TURNS * READERS
    for path, reader in readers.items():
        (handle,) = [handle for handle in handles if handle.turn_id in path]
        assert reader.events == [event.model_dump(mode="json") for event in handle.events()]
    for handle in handles:
        assert len(diary.notes("start", tool="write", turn=handle.turn_id)) == 1, "nothing ran twice"


def test_a_gateway_whose_owner_is_gone_ends_its_streams_with_a_word_and_itself_with_0(
    pump: Pump, tmp_path: Path
) -> None:
    """It sends itself SIGTERM then, which is what anybody else stops it with. It listens on the socket it was handed:
    the port was bound before the gateway began, so that nobody could take it in between."""
    handle = pump.submit("s1", script(final="x"))
    reader = EventReader()
    theirs, ours = os.pipe()
    ready = tmp_path / "gateway.ready"
    given = {**environment(pump), "BRAINQ_OWNER_FD": str(theirs), "BRAINQ_READY_FILE": str(ready)}
    listener = listener_at("127.0.0.1", 0)
    given["BRAINQ_HTTP_FD"] = str(listener.fileno())
    port = int(listener.getsockname()[1])
    with GatewayProcess(tmp_path, given, inherited=[theirs, listener.fileno()], port=port) as gateway:
        os.close(theirs)
        listener.close()
        assert gateway.said.startswith(f"brainq serves {gateway.url}; ")
        wait_until(ready.exists, "it says that it is ready")
        url = f"{gateway.url}/v1/turns/{handle.turn_id}/events"
        with httpx.stream("GET", url, timeout=30, verify=False) as stream:
            pieces = stream.iter_raw()
            reader.feed(next(pieces))
            os.close(ours)
            for piece in pieces:
                reader.feed(piece)
        assert gateway.process.wait(30) == 0
    assert reader.retry_ms
    assert not reader.is_over


def test_serve_becomes_the_gateways_process_where_it_is_told_to(pump: Pump, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in environment(pump).items():
        monkeypatch.setenv(name, value)
    for name in ("HOST", "PORT"):  # which the command sets
        monkeypatch.setenv(f"BRAINQ_HTTP_{name}", "")
    became: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, command: became.append([program, *command[1:]]))  # pyright: ignore[reportUnknownArgumentType, reportUnknownLambdaType]
    said = CliRunner().invoke(app, ["serve", "--host", "0.0.0.0", "--port", str(free_port())])
    assert said.exit_code == 0, said.output
    assert became == [gateway_command()]
    assert os.environ["BRAINQ_HTTP_HOST"] == "0.0.0.0"


def test_serve_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("brainq.cli.commands.run.has_http", lambda: False)
    with pytest.raises(SetupError, match=r"pip install 'brainq\[http\]'"):
        require_http()
