"""Tools that run as tasks of their server: the call parks, and the server is asked until there is a result."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, McpServer, McpTool
from brainq.client.handle import TurnHandle
from brainq.contracts.call import ServerTask
from brainq.contracts.status import Effect, Ending, TraceStatus
from brainq.engine.calls.executor import TOOL_LOOP
from brainq.engine.models.scripted import calls, says
from brainq.engine.tools.deadline import DeadlineToken
from brainq.engine.tools.mcp.catalogue import PinnedServer, write_catalogue
from brainq.engine.tools.mcp.session import close_sessions
from brainq.engine.tools.mcp.tools import tools_of_server
from brainq.engine.tools.results import OutcomeUnknown, ToolError
from brainq.engine.tools.tool import ServerUnavailable, TaskWorking
from brainq.errors import InvalidInput
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers import laboratory
from tests.support.mcp_servers.over_http import TasksOverHttp
from tests.support.mcp_servers.tasks import end, lines, text
from tests.support.people import Pumps, Watched, awaits
from tests.support.pump import Pump
from tests.support.wait import wait_until
from tests.unit.engine.calls.support import context_for, is_running

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.fixture(scope="session")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> PinnedServer:
    return looked(laboratory(tmp_path_factory.mktemp("pinned")))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "lab"
    made.mkdir()
    return made


@pytest.fixture
def over_http(folder: Path) -> Iterator[McpServer]:
    with TasksOverHttp(folder) as served:
        yield McpServer("lab", url=served.url, tools={"survey": McpTool(task=True)})


class Lab:
    """A brain with the server's tools, whose model calls one of them."""

    def __init__(self, pumps: Pumps, folder: Path, server: McpServer, pinned: PinnedServer, tool: str) -> None:
        catalogue = folder.parent / "mcp.lock.json"
        write_catalogue(catalogue, {"lab": pinned.model_copy(update={"transport": server.transport})})
        self.model = Watched(calls((f"lab__{tool}", {"topic": "bees"})), says("Done."))
        self.brain = Brain("lab", self.model, mcp=[server], mcp_catalogue=catalogue)
        self.folder = folder
        self.pumps = pumps
        self.pump: Pump = pumps(self.brain)

    def parked(self) -> TurnHandle:
        handle = self.pump.submit("s1", "Go.")
        self.pump.drain()
        assert awaits(handle) == "parked outside"
        assert not self.pump.waiting()
        return handle

    def asked(self, times: int = 1) -> None:
        before = len(lines(self.folder, "gets"))
        wait_until(lambda: len(lines(self.folder, "gets")) >= before + times, "the server is asked")

    def told(self, handle: TurnHandle, messages: list[str]) -> None:
        """Just these have been published of how far its call is."""

        def published() -> bool:
            said = [event.data["message"] for event in handle.events_so_far() if event.kind == "call.progress"]
            return said == messages

        wait_until(published, f"published: {messages}")

    def finished(self, handle: TurnHandle) -> str:
        """What the model read of the call."""
        assert self.pump.finish(handle).ending is Ending.COMPLETED
        (result,) = self.model.results(2)
        wait_until(lambda: not self.rows(), "nobody watches the task any more")
        return result

    def rows(self) -> list[str]:
        redis: Any = self.pump.wiring.state.redis
        return [row for key in redis.keys("*tasks:*") for row in redis.zrange(key, 0, -1)]

    def status(self, handle: TurnHandle) -> TraceStatus:
        (entry,) = self.pump.wiring.state.calls.trace("s1", handle.turn_id)
        return entry.status

    def called(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in lines(self.folder, "calls")]


def watch_of(pump: Pump) -> Any:
    runner: Any = pump.wiring.runner
    return runner.watch


@pytest.fixture
def lab(pumps: Pumps, folder: Path, over_http: McpServer, pinned: PinnedServer) -> Lab:
    return Lab(pumps, folder, over_http, pinned, "research")


@pytest.fixture
def over_stdio(pumps: Pumps, folder: Path, pinned: PinnedServer) -> Lab:
    return Lab(pumps, folder, laboratory(folder), pinned, "research")


def test_a_call_parks_and_its_server_s_result_is_its_own(lab: Lab) -> None:
    handle = lab.parked()
    lab.told(handle, ["reading about bees"])
    end(lab.folder, "task-1", "working", message="writing it up")
    lab.told(handle, ["reading about bees", "writing it up"])
    picture = {"type": "image", "mimeType": "image/png", "data": PNG}
    end(lab.folder, "task-1", "completed", {"content": [*text("the report")["content"], picture]})
    assert lab.finished(handle) == "the report\n[image: image/png, 70 bytes]"
    (shown,) = [message for message in lab.model.requests[-1].messages if message.role == "tool"]
    assert [file.media_type for file in shown.attachments] == ["image/png"]
    (called,) = lab.called()
    assert called["task"] == {"ttl": 86_400_000}
    assert lab.status(handle) is TraceStatus.COMPLETED
    (row,) = lab.pump.wiring.store.calls.of_turn(handle.turn_id)
    assert (row.state, row.outcome_kind) == ("done", "success")
    assert lines(lab.folder, "cancelled") == []


@pytest.mark.full
def test_over_stdio_the_server_s_own_process_is_asked(over_stdio: Lab) -> None:
    handle = over_stdio.parked()
    over_stdio.asked()
    end(over_stdio.folder, "task-1", "completed", text("the report"))
    assert over_stdio.finished(handle) == "the report"
    assert len(over_stdio.called()) == 1


def test_the_task_of_a_server_that_ended_is_unknown_and_not_begun_again(over_stdio: Lab) -> None:
    handle = over_stdio.parked()
    (called,) = over_stdio.called()
    os.kill(called["pid"], signal.SIGKILL)
    wait_until(lambda: not is_running(called["pid"]), "the server is gone")
    assert "ended before its task did" in over_stdio.finished(handle)
    assert over_stdio.status(handle) is TraceStatus.UNKNOWN
    assert len(over_stdio.called()) == 1


@pytest.mark.full
def test_a_read_s_task_that_its_server_forgot_has_failed(
    pumps: Pumps, folder: Path, over_http: McpServer, pinned: PinnedServer
) -> None:
    lab = Lab(pumps, folder, over_http, pinned, "survey")
    handle = lab.parked()
    (folder / "task-1.json").unlink()
    assert "Task not found" in lab.finished(handle)
    assert lab.status(handle) is TraceStatus.FAILED


def test_what_the_server_says_of_an_end_is_the_call_s(folder: Path, over_http: McpServer, pinned: PinnedServer) -> None:
    (research, *_) = tools_of_server(over_http, pinned.model_copy(update={"transport": "http"}))
    shut, closed = text("the archive is shut", isError=True), None
    ends = {
        "shut": ("failed", shut, None),
        "closed": ("failed", closed, "it broke"),
        "no bees": ("completed", text("no such bees", isError=True), None),
        "stopped": ("cancelled", None, "the operator stopped it"),
        "which": ("input_required", None, "which bees?"),
        "odd": ("completed", {"content": "no list"}, None),
        "fine": ("completed", text("the report"), None),
        "slow": ("working", None, "page 7"),
    }
    for name, (status, result, message) in ends.items():
        end(folder, name, status, result, message)

    async def asked() -> dict[str, Any]:
        assert research.tasks is not None
        return {name: await research.tasks.poll(ServerTask(name, 0, 60.0)) for name in [*ends, "lost"]}

    said = asyncio.run_coroutine_threadsafe(asked(), TOOL_LOOP.loop).result(60)
    close_sessions()
    TOOL_LOOP.stop()
    assert said.pop("slow") == TaskWorking("page 7", 100)
    assert said["which"].goes_on
    results = {name: one.result for name, one in said.items()}
    assert results.pop("fine") == "the report"
    unknown = {name: one.text for name, one in results.items() if isinstance(one, OutcomeUnknown)}
    assert set(unknown) == {"odd", "lost"}
    assert "Task not found" in unknown["lost"]
    assert {name: one.text for name, one in results.items() if isinstance(one, ToolError)} == {
        "shut": "the archive is shut",
        "closed": "The MCP server 'lab' says: the archive is closed",
        "no bees": "no such bees",
        "stopped": "the operator stopped it",
        "which": "The MCP server 'lab' requests further input, which brainq cannot give.",
    }


def test_the_task_of_a_cancelled_turn_is_cancelled(lab: Lab) -> None:
    handle = lab.parked()
    handle.cancel("no longer wanted")
    assert lab.pump.finish(handle).ending is Ending.CANCELLED
    wait_until(lambda: lines(lab.folder, "cancelled") == ["task-1"], "the server is told")
    wait_until(lambda: not lab.rows(), "nobody watches the task any more")


@pytest.mark.full
def test_a_task_that_is_waited_for_too_long_is_cancelled(
    pumps: Pumps, folder: Path, over_http: McpServer, pinned: PinnedServer
) -> None:
    server = McpServer("lab", url=over_http.url, tools={"research": McpTool(timeout_s=0.2)})
    lab = Lab(pumps, folder, server, pinned, "research")
    handle = lab.parked()
    assert "No result came from outside" in lab.finished(handle)
    assert lab.status(handle) is TraceStatus.TIMED_OUT
    assert lines(folder, "cancelled") == ["task-1"]


def test_another_process_goes_on_with_a_task_whose_watcher_is_gone(lab: Lab) -> None:
    handle = lab.parked()
    watch_of(lab.pump).beats.stop()
    for running in list(watch_of(lab.pump)._running):  # as a kill would: nothing is handed over
        running.cancel()
    end(lab.folder, "task-1", "completed", text("the report"))
    lab.pump = lab.pumps(lab.brain, owner="two")
    _ = lab.pump.wiring.runner
    assert lab.finished(handle) == "the report"
    assert len(lab.called()) == 1


@pytest.mark.full
def test_a_process_that_stops_leaves_its_tasks_to_others(lab: Lab) -> None:
    handle = lab.parked()
    wait_until(lambda: bool(watch_of(lab.pump)._watched), "the task is watched")
    lab.pump.wiring.runner.close()
    (key,) = lab.pump.wiring.state.redis.keys("*tasks:*")
    assert [score for _, score in lab.pump.wiring.state.redis.zrange(key, 0, -1, withscores=True)] == [0.0]
    end(lab.folder, "task-1", "completed", text("the report"))
    lab.pump = lab.pumps(lab.brain, owner="two")
    _ = lab.pump.wiring.runner
    assert lab.finished(handle) == "the report"
    assert len(lab.called()) == 1


@pytest.mark.full
def test_a_server_that_is_away_for_a_while_is_asked_again(pumps: Pumps, folder: Path, pinned: PinnedServer) -> None:
    with TasksOverHttp(folder) as served:
        lab = Lab(pumps, folder, McpServer("lab", url=served.url), pinned, "research")
        handle = lab.parked()
        lab.asked()
    with TasksOverHttp(folder, served.port):  # a new process: it knows no session of before
        end(folder, "task-1", "completed", text("the report"))
        assert lab.finished(handle) == "the report"
    assert len(lab.called()) == 1


def test_a_tool_that_may_run_as_a_task_is_waited_for_unless_the_operator_says_so(
    pumps: Pumps, folder: Path, over_http: McpServer, pinned: PinnedServer
) -> None:
    lab = Lab(pumps, folder, McpServer("lab", url=over_http.url), pinned, "survey")
    handle = lab.pump.submit("s1", "Go.")
    assert lab.finished(handle) == "saw bees"
    assert [called["task"] for called in lab.called()] == [None]


@pytest.mark.parametrize(
    ("tool", "task", "words"),
    [("note", True, "can not be called as a task"), ("research", False, "can only be called as a task")],
)
def test_a_rule_that_the_server_s_tool_cannot_keep_is_refused(
    pinned: PinnedServer, folder: Path, tool: str, task: bool, words: str
) -> None:
    with pytest.raises(InvalidInput, match=words):
        tools_of_server(laboratory(folder, tools={tool: McpTool(task=task)}), pinned)


def test_a_server_that_does_not_say_how_its_task_is_is_away(
    folder: Path, over_http: McpServer, pinned: PinnedServer
) -> None:
    (research, *_) = tools_of_server(over_http, pinned.model_copy(update={"transport": "http"}))
    end(folder, "task-1", "busy")

    async def asked() -> object:
        assert research.tasks is not None
        return await research.tasks.poll(ServerTask("task-1", 0, 60.0))

    with pytest.raises(ServerUnavailable, match="slow down"):
        asyncio.run_coroutine_threadsafe(asked(), TOOL_LOOP.loop).result(60)
    close_sessions()
    TOOL_LOOP.stop()


def test_a_server_that_was_started_again_is_not_asked_for_its_forerunner_s_task(
    folder: Path, pinned: PinnedServer
) -> None:
    (research, *_) = tools_of_server(laboratory(folder), pinned)
    tasks = research.tasks
    assert tasks is not None

    def done(request: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(request, TOOL_LOOP.loop).result(60)

    task = done(research.function(_brainq_context=context_for(DeadlineToken(60.0)), topic="bees"))
    end(folder, task.task_id, "completed", text("of bees"))
    forerunner_s = replace(task, held_by="a connection of before")  # whose server, too, began to count at one
    lost = done(tasks.poll(forerunner_s)).result
    assert isinstance(lost, OutcomeUnknown)
    assert "ended before its task did" in str(lost)
    done(tasks.cancel(forerunner_s))
    assert not lines(folder, "gets") + lines(folder, "cancelled")
    assert done(tasks.poll(task)).result == "of bees"
    close_sessions()
    TOOL_LOOP.stop()


@pytest.mark.full
def test_a_server_that_does_not_say_how_its_task_is_is_asked_again(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    handle = lab.parked()
    end(lab.folder, "task-1", "busy")
    lab.asked()
    end(lab.folder, "task-1", "completed", text("the report"))
    assert lab.finished(handle) == "the report"
    said = [record.getMessage() for record in caplog.records]
    assert any("ask for a server's task failed and will be tried again" in line for line in said)
    assert not any("no longer watched" in line for line in said)


def test_a_row_of_another_version_keeps_no_other_task_from_being_taken(lab: Lab) -> None:
    handle = lab.parked()
    first = lab.pump.wiring
    watch_of(lab.pump).close()
    redis: Any = first.state.redis
    (key,) = redis.keys("*tasks:*")
    ((row, _),) = redis.zrange(key, 0, -1, withscores=True)
    written = json.loads(row)
    renamed = {("ref" if name == "call" else name): value for name, value in written.items()}
    odd = [{**written, "effect": "telepathy"}, renamed, [], {**written, "task": ["task-1"]}, {**written, "call": 7}]
    unreadable = {json.dumps(one): -number for number, one in enumerate(odd, 1)}
    old = json.dumps({**renamed, "begun": 1})
    more = json.dumps({**written, "task": [*written["task"], "more"], "more": 1})
    redis.zadd(key, {**unreadable, "no JSON": -9, old: -8, more: -7, row: -6})
    place = [(written["brain"], Effect(written["effect"]))]
    tasks = first.state.outside
    assert [task.row for task in tasks.lapsed_tasks(place, 20)] == [more, row]
    assert redis.zrange(key, 0, 1) == [more, row]  # before those that were put off
    kept = set(redis.zrange(key, 0, -1)) - {more, row}
    assert kept == {one for one in unreadable if one != "[]"}  # what is too old, or says no time, is forgotten
    redis.zrem(key, more, *kept)
    end(lab.folder, "task-1", "completed", text("the report"))
    lab.pump = lab.pumps(lab.brain, owner="two")
    _ = lab.pump.wiring.runner
    assert lab.finished(handle) == "the report"


def test_tasks_that_are_watched_keep_no_call_that_runs_from_its_beats(lab: Lab) -> None:
    is_slow, beaten, go_on = threading.Event(), threading.Event(), threading.Event()

    def slow() -> str:
        is_slow.set()
        go_on.wait(60)
        return "OK"

    def beat() -> str:
        beaten.set()
        return "OK"

    def lost(word: str) -> None:
        raise AssertionError(word)

    with watch_of(lab.pump).beats.renew(slow, lost):
        assert is_slow.wait(60)
        with lab.pump.wiring.beats.renew(beat, lost):
            was_beaten = beaten.wait(30)
        go_on.set()
    assert was_beaten
