"""brainq as an MCP server, whole: real pools, real processes that are killed, a brain and npm's SDK as clients."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from brainq.client.handle import TurnHandle
from brainq.contracts.event import EventKind
from brainq.engine.tools.mcp.calls import IDEMPOTENCY_KEY
from brainq.engine.tools.mcp.catalogue import write_catalogue
from tests.integration.mcp.conftest import looked
from tests.support.brains import asking_over_mcp, diary
from tests.support.brains.obedient import script
from tests.support.gateways import GatewayProcess
from tests.support.mcp_clients import AGES, Age, over_http, run, told
from tests.support.mcp_servers import FOLDER, why_not
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = pytest.mark.full
GATE = "shut"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"), log_level="DEBUG")
    try:
        yield made.start()
    finally:
        made.stop()


@pytest.fixture
def gateway(world: World, tmp_path: Path) -> Iterator[GatewayProcess]:
    with GatewayProcess(tmp_path, world.environment) as gateway:
        yield gateway


@asynccontextmanager
async def over_stdio(world: World, age: Age) -> AsyncGenerator[Client]:
    command = [str(Path(sys.prefix) / "bin" / "brainq"), "mcp", "serve", "--log-level", "debug"]
    environment = {**os.environ, **world.environment}
    server = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with Client(server, mode=age, cache=None) as client:
        yield client


async def eventually(so: Any, what: str) -> None:
    await asyncio.to_thread(wait_until, so, what)


@pytest.mark.parametrize("age", AGES)
def test_a_program_that_starts_it_asks_cancels_and_leaves(world: World, age: Age) -> None:
    heard: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append(progress)

    async def ask() -> tuple[str, str]:
        async with over_stdio(world, age) as client:
            said = script([("read", {"name": "r"})], [("write", {"name": f"stdio-{age}"})], final="so")
            answer = told(await client.call_tool("obedient", {"message": said}, progress_callback=hear))
            assert (answer["state"], answer["text"]) == ("completed", "so")
            gated = script([("read", {"name": "r", "gate": f"{GATE}-{age}"})])
            call = asyncio.create_task(client.call_tool("obedient", {"message": gated, "session": f"c-{age}"}))
            await eventually(lambda: live(f"c-{age}"), "the turn is live")
            cancelled = live(f"c-{age}")
            await eventually(lambda: diary.notes("start", turn=cancelled), "it is in its call")
            call.cancel()
            await asyncio.wait({call})
            await eventually(lambda: not live(f"c-{age}"), "the turn ends")
            left = told(await client.call_tool("obedient", {"message": gated, "wait_s": 0}))
            return cancelled, left["turn_id"]

    def live(session: str) -> str:
        return world.client.session(session).live() or ""

    cancelled, left = run(ask())
    assert heard == sorted(set(heard))
    assert len(diary.notes("start", tool="write", name=f"stdio-{age}")) == 1
    assert world.client.handle(cancelled).result(timeout_s=30).ending == "cancelled"
    diary.open_gate(f"{GATE}-{age}")
    assert world.client.handle(left).result(timeout_s=60).ending == "completed", "it outlives its client"


def test_only_the_protocol_is_on_stdout(world: World) -> None:
    opened = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opened},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list", "arguments": {}}},
    ]
    command = [str(Path(sys.prefix) / "bin" / "brainq"), "mcp", "serve", "--log-level", "debug"]
    with subprocess.Popen(
        command,
        env={**os.environ, **world.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(json.dumps(one) + "\n" for one in asked))
        process.stdin.flush()
        said = [json.loads(process.stdout.readline()) for _ in range(2)]
        rest, _ = process.communicate(timeout=60)
    assert [one["id"] for one in said] == [1, 2]
    assert (rest, process.returncode) == ("", 0)


@pytest.mark.parametrize("age", AGES)
def test_a_gateway_killed_in_the_middle_of_a_call_costs_nothing(world: World, tmp_path: Path, age: Age) -> None:
    name, gate = f"killed-{age}", f"{GATE}-killed-{age}"
    said = script([("read", {"name": "r", "gate": gate})], [("write", {"name": name})], final="so")
    meta: Any = {IDEMPOTENCY_KEY: name}
    given = {"message": said, "session": f"s-{name}"}
    turns: list[str] = []

    async def cut(url: str) -> None:
        async with over_http(url, age=age) as client:
            await client.list_tools()
            call = asyncio.create_task(client.call_tool("obedient", given, meta=meta))
            session = world.client.session(f"s-{name}")
            await eventually(session.live, "the turn is live")
            turns.append(session.live() or "")
            await eventually(lambda: diary.notes("start", turn=turns[0]), "it is in its call")
            await asyncio.to_thread(first.kill)
            await call

    async def again(url: str) -> dict[str, Any]:
        async with over_http(url, age=age) as client:
            return told(await client.call_tool("obedient", given, meta=meta))

    broken = pytest.raises(BaseExceptionGroup)  # the SDK's client goes down with its server
    with GatewayProcess(tmp_path, world.environment) as first, broken:
        run(cut(first.url))
    diary.open_gate(gate)
    with GatewayProcess(tmp_path, world.environment) as second:
        answer = run(again(second.url))
    assert (answer["turn_id"], answer["text"]) == (turns[0], "so")
    assert len(diary.notes("start", turn=turns[0])) == 2, "one read and one write, once each"


def test_twenty_clients_at_two_gateways_have_an_answer_each(
    world: World, gateway: GatewayProcess, tmp_path: Path
) -> None:
    heard: dict[int, list[float]] = {number: [] for number in range(20)}

    async def ask(url: str, number: int) -> dict[str, Any]:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            heard[number].append(progress)

        said = script([("write", {"name": f"many-{number}"})], final=f"answer {number}")
        async with over_http(url, age=AGES[number % 2]) as client:
            return told(await client.call_tool("obedient", {"message": said}, progress_callback=hear))

    async def all_of_them(urls: list[str]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(ask(urls[number // 2 % 2], number) for number in range(20)))

    with GatewayProcess(tmp_path, world.environment) as other:
        answers = run(all_of_them([gateway.url, other.url]))
    assert [answer["text"] for answer in answers] == [f"answer {number}" for number in range(20)]
    for number, told_ in heard.items():
        assert told_ == sorted(set(told_))
        assert len(told_) > 3
        assert len(diary.notes("start", name=f"many-{number}")) == 1


@pytest.mark.timeout(600)  # two fleets start
def test_a_brain_calls_a_brain_of_another_deployment(
    world: World, gateway: GatewayProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its progress is the outer call's, its answer the call's result; who cancels the outer turn cancels it."""
    url, catalogue = f"{gateway.url}/mcp", tmp_path / "lock.json"
    write_catalogue(catalogue, {"other": looked(asking_over_mcp.other(url))})
    given = {
        "BRAINQ_APP": "tests.support.brains.asking_over_mcp:brain",
        asking_over_mcp.URL: url,
        asking_over_mcp.CATALOGUE: str(catalogue),
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delitem(sys.modules, asking_over_mcp.__name__)
    monkeypatch.setenv(diary.DIRECTORY, str(world.directory))  # which a world sets to its own
    outer = World(tmp_path / "outer", environment=given)
    monkeypatch.setenv(diary.DIRECTORY, str(world.directory))

    def progress(handle: TurnHandle) -> list[Any]:
        events = handle.events_so_far()
        return [event.data.get("message") for event in events if event.kind is EventKind.CALL_PROGRESS]

    try:
        outer.start()
        said = script([("read", {"name": "r"}), ("write", {"name": "inner"})], final="from within")
        handle = outer.client.submit("s", said)
        assert "from within" in handle.result(timeout_s=90).text
        assert len(diary.notes("start", name="inner")) == 1

        gate = f"{GATE}-inner"
        handle = outer.client.submit("s", script([("read", {"name": "gated", "gate": gate})]))
        wait_until(lambda: diary.notes("start", name="gated"), "the inner turn is in its call")
        (inner,) = {note["turn"] for note in diary.notes("start", name="gated")}
        wait_until(lambda: "read runs" in progress(handle), "the outer call says so")
        handle.cancel()
        assert handle.result(timeout_s=60).ending == "cancelled"
        assert world.client.handle(inner).result(timeout_s=60).ending == "cancelled"
    finally:
        outer.stop()


@pytest.mark.needs(why_not() is None, "make mcp-servers")
def test_npm_s_sdk_is_a_client(world: World, gateway: GatewayProcess) -> None:
    """The TypeScript SDK's client: it lists, asks with progress, validates what comes, and cancels."""
    program = Path(__file__).parents[1] / "support" / "mcp_servers" / "client.mjs"
    done = script([("read", {"name": "r"})], final="so")
    gated = script([("read", {"name": "npm", "gate": f"{GATE}-npm"})])
    found = subprocess.run(
        ["node", "--input-type=module", "-e", program.read_text(), f"{gateway.url}/mcp", done, gated],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    said = json.loads(found.stdout)
    assert "obedient" in said["tools"]
    assert said["answer"]["structuredContent"]["text"] == "so"
    assert said["progress"] == sorted(set(said["progress"]))
    assert len(said["progress"]) > 3
    assert "no such tool" in said["unknown"]
    (turn_id,) = {note["turn"] for note in diary.notes("start", name="npm")}
    assert world.client.handle(turn_id).result(timeout_s=60).ending == "cancelled"
