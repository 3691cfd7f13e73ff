"""Servers that nobody here wrote."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect
from brainq.contracts.call import ToolFailure, ToolSuccess, ToolTimeout, ToolUnknown
from brainq.engine.calls.executor import BoundedToolExecutor
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.context import RunContext
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.mcp.catalogue import write_catalogue
from brainq.engine.tools.mcp.server import McpServer, McpTool
from brainq.engine.tools.mcp.session import discover
from brainq.engine.tools.mcp.tools import pinning_mode, tools_of_server
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers import HOLDER, npm, pypi, why_not
from tests.support.people import Pumps, Watched, awaits
from tests.support.wait import wait_until
from tests.support.world import World
from tests.unit.engine.calls.support import context_for, is_running, run_in

pytestmark = [pytest.mark.full, pytest.mark.needs(why_not() is None, "make mcp-servers")]
Asked = Callable[..., Any]


@pytest.fixture
def five(tmp_path: Path) -> list[McpServer]:
    repository = tmp_path / "repository"
    git = ["git", "-C", str(repository), "-c", "user.name=t", "-c", "user.email=t@t"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "first"], check=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("hello")
    return [
        McpServer("files", [npm("mcp-server-filesystem"), str(tmp_path / "files")]),
        McpServer("memory", [npm("mcp-server-memory")], env={"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}),
        McpServer("everything", [npm("mcp-server-everything"), "stdio"], env={"MY_API_KEY": "sk-everything-1"}),
        McpServer("git", [pypi("mcp-server-git"), "-r", str(repository)]),
        McpServer("time", [pypi("mcp-server-time")]),
    ]


@contextmanager
def counting_starts() -> Generator[list[str]]:
    """The programs that this process starts meanwhile."""
    started: list[str] = []
    counting = True

    def hear(event: str, about: tuple[Any, ...]) -> None:  # an audit hook stays for good
        if counting and event == "subprocess.Popen":
            started.append(str(about[0]))

    sys.addaudithook(hear)
    try:
        yield started
    finally:
        counting = False


def calling(executor: BoundedToolExecutor, server: McpServer) -> Asked:
    tools = {tool.name: tool for tool in tools_of_server(server, looked(server))}

    def call(name: str, limit_s: float = 30.0, context: RunContext | None = None, **arguments: Any) -> Any:
        context = context_for(DeadlineToken(limit_s)) if context is None else context
        return run_in(executor, tools[f"{server.name}__{name}"], context, arguments)

    return call


def test_five_servers_are_pinned_and_none_is_started_to_know_their_tools(five: list[McpServer], tmp_path: Path) -> None:
    with counting_starts() as to_pin:
        seen = discover(five)
    assert {server.command[0] for server in five if server.command} <= set(to_pin)
    pinned = {name: one.found for name, one in seen.items() if one.found is not None}
    assert set(pinned) == {server.name for server in five}, seen
    assert not [left for one in pinned.values() for left in one.left_out]
    write_catalogue(tmp_path / "lock.json", pinned)
    with counting_starts() as to_load:
        brain = Brain("five", "openai:x", mcp=five, mcp_catalogue=tmp_path / "lock.json")
    assert to_load == []
    effects = {name: spec.effect for name, spec in brain.tools.specs.items()}
    assert effects["files__read_text_file"] is Effect.READ_ONLY
    assert effects["files__write_file"] is Effect.DESTRUCTIVE
    assert not effects["memory__create_entities"].is_read
    assert effects["git__git_status"] is Effect.READ_ONLY
    with pinning_mode():
        assert not Brain("five", "openai:x", mcp=five, mcp_catalogue=tmp_path / "lock.json").tools


def test_each_of_the_five_answers(five: list[McpServer], executor: BoundedToolExecutor, tmp_path: Path) -> None:
    files, memory, everything, git, clock = [calling(executor, server) for server in five]
    read = files("read_text_file", path=str(tmp_path / "files" / "a.txt"))
    assert isinstance(read, ToolSuccess)
    assert "hello" in str(read.value)
    outside = files("read_text_file", path="/etc/passwd")
    assert isinstance(outside, ToolFailure)
    assert "Access denied" in outside.error
    assert isinstance(memory("create_entities", entities=[]), ToolSuccess)
    assert isinstance(everything("echo", message="hi"), ToolSuccess)
    context = context_for(DeadlineToken(30.0))
    assert "image/png" in str(getattr(everything("get-tiny-image", context=context), "value", ""))
    assert [file.media_type for file in context.outputs().files] == ["image/png"]
    environment = everything("get-env")
    assert isinstance(environment, ToolSuccess)
    assert "MY_API_KEY" in str(environment.value)
    assert "sk-everything-1" not in str(environment.value)
    log = git("git_log", repo_path=str(tmp_path / "repository"), max_count=1)
    assert "first" in str(getattr(log, "value", log))
    now = clock("get_current_time", timezone="Europe/Berlin")
    assert "Europe/Berlin" in str(getattr(now, "value", now))


def test_a_long_read_is_cancelled_and_the_server_goes_on(five: list[McpServer], executor: BoundedToolExecutor) -> None:
    everything = calling(executor, five[2])
    assert isinstance(everything("echo", message="hi"), ToolSuccess)
    pid = children_of(os.getpid(), "server-everything")
    context = context_for(DeadlineToken(2.5))
    cut = everything("trigger-long-running-operation", context=context, duration=30, steps=30)
    assert isinstance(cut, ToolTimeout)
    assert context.newest_progress is not None
    assert context.newest_progress.total == 30
    assert isinstance(everything("echo", message="hi"), ToolSuccess)
    assert pid


def test_a_research_query_is_a_task_and_its_report_the_call_s(
    five: list[McpServer], tmp_path: Path, pumps: Pumps
) -> None:
    everything, catalogue = five[2], tmp_path / "lock.json"
    write_catalogue(catalogue, {"everything": looked(everything)})
    model = Watched(calls(("everything__simulate-research-query", {"topic": "bees"})), says("Done."))
    pump = pumps(Brain("lab", model, mcp=[everything], mcp_catalogue=catalogue))
    handle = pump.submit("s1", "Go.")
    pump.drain()
    assert awaits(handle) == "parked outside"
    assert pump.finish(handle).text == "Done."
    (report,) = model.results(2)
    assert report.startswith("# Research Report: bees")
    said = [event.data["message"] for event in handle.events() if event.kind == "call.progress"]
    assert "Synthesizing findings..." in said


def test_a_server_that_is_killed_between_calls_is_opened_again(
    five: list[McpServer], executor: BoundedToolExecutor, tmp_path: Path
) -> None:
    memory = calling(executor, five[1])
    for number in range(3):
        kept = memory("create_entities", entities=[entity(f"e{number}")])
        assert isinstance(kept, ToolSuccess), kept
        [pid] = children_of(os.getpid(), "server-memory")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_running(pid), "the server is gone")
    read = memory("read_graph")
    assert isinstance(read, ToolSuccess)
    assert names_in(tmp_path / "memory.jsonl") == {"e0", "e1", "e2"}


@pytest.mark.parametrize("effect", [Effect.READ_ONLY, Effect.DESTRUCTIVE])
def test_a_server_that_is_killed_in_a_call_is_opened_again(
    five: list[McpServer], executor: BoundedToolExecutor, effect: Effect
) -> None:
    """A read is asked once more; of a change nobody knows."""
    rule = McpTool(effect=effect, idempotent=False)
    everything = calling(executor, replace(five[2], tools={"trigger-long-running-operation": rule}))
    context = context_for(DeadlineToken(60.0))
    with ThreadPoolExecutor(1) as threads:
        asked = threads.submit(everything, "trigger-long-running-operation", context=context, duration=3, steps=12)
        wait_until(lambda: context.newest_progress is not None, "the server is in the middle of it")
        [pid] = children_of(os.getpid(), "server-everything")
        os.kill(pid, signal.SIGKILL)
        ended = asked.result(60)
    assert isinstance(ended, ToolSuccess if effect.is_read else ToolUnknown), ended
    assert isinstance(everything("echo", message="hi"), ToolSuccess)
    assert children_of(os.getpid(), "server-everything") != [pid]


def test_no_server_outlives_a_worker_that_is_killed(five: list[McpServer]) -> None:
    """One of them is in the middle of a call: for five minutes it writes nothing, and does not heed its stdin's end."""
    files, memory, everything, *others = five
    long = {"tool": "trigger-long-running-operation", "arguments": {"duration": 600, "steps": 2}}
    given = {
        "servers": [
            {"name": one.name, "command": one.command, "env": dict(one.env)}
            for one in (everything, files, memory, *others)
        ],
        "busy": long,
        "then": {"tool": "echo", "arguments": {"message": "hi"}},
    }
    holder = subprocess.Popen([sys.executable, str(HOLDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdin is not None
    assert holder.stdout is not None
    try:
        holder.stdin.write(json.dumps(given) + "\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "busy\n"
        held = children_of(holder.pid, "server-")
        assert len(held) == len(five)
        family = children_of(holder.pid, "")
        assert len(family) == len(held) + 1  # and the guard
    finally:
        holder.kill()
        holder.wait(20)
        holder.stdin.close()
        holder.stdout.close()
    wait_until(lambda: not [pid for pid in family if is_running(pid)], "the servers are gone", 30)


def entity(name: str) -> dict[str, Any]:
    return {"name": name, "entityType": "x", "observations": []}


def names_in(file: Path) -> set[str]:
    return {json.loads(line)["name"] for line in file.read_text().splitlines() if line}


def children_of(pid: int, name: str) -> list[int]:
    found = subprocess.run(["pgrep", "-P", str(pid), "-f", name], capture_output=True, text=True, check=False)
    alive = [int(line) for line in found.stdout.split()]
    return [one for one in alive if "Z" not in Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[0]]


def pids_of(world: World, pool: str) -> list[int]:
    return [worker.process.pid for worker in world.fleet.of_pool(pool) if worker.process is not None]


@pytest.mark.parametrize("lane", ["", "entity:{session}"])
def test_fifty_writes_at_three_serial_workers_are_all_kept_in_the_server_s_lane(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """With a lane a session in its place, writes are lost: the lane is what keeps them."""
    memory, catalogue = tmp_path / "memory.jsonl", tmp_path / "lock.json"
    server = McpServer("memory", [npm("mcp-server-memory")], env={"MEMORY_FILE_PATH": str(memory)})
    write_catalogue(catalogue, {"memory": looked(server)})
    given = {
        "BRAINQ_APP": "tests.support.brains.mcp_memory:brain",
        "MEMORY_FILE": str(memory),
        "MEMORY_CATALOGUE": str(catalogue),
        "MEMORY_LANE": lane,
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    world = World(
        tmp_path / "world",
        workers={"coordinator": 1, "parallel": 1, "serial": 3, "finalizer": 1},
        threads={"serial": 1 if not lane else 8},
        environment=given,
    )
    try:
        world.start()
        with ThreadPoolExecutor(10) as threads:
            submitted = [threads.submit(world.client.submit, f"s{n}", f"entity {n}") for n in range(50)]
            handles = [one.result() for one in submitted]
        for handle in handles:
            assert handle.result(timeout_s=120).text == "Done."
        started = {
            pool: sum(bool(children_of(pid, "server-memory")) for pid in pids_of(world, pool))
            for pool in ("coordinator", "parallel", "serial", "finalizer")
        }
        assert started == {"coordinator": 0, "parallel": 0, "serial": 3, "finalizer": 0}
    finally:
        world.stop()
    kept = len(names_in(memory))
    print(f"kept {kept} of 50, lane {lane or 'mcp:memory'}")
    assert kept == 50 if not lane else kept < 50
