"""A server's task goes on while every process of the fleet is killed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from brainq import McpServer
from brainq.engine.tools.mcp.catalogue import write_catalogue
from tests.integration.mcp.conftest import looked
from tests.support.mcp_servers.over_http import TasksOverHttp
from tests.support.mcp_servers.tasks import end, lines, text
from tests.support.wait import wait_until
from tests.support.world import World

pytestmark = pytest.mark.full


def test_a_task_is_begun_once_and_its_result_arrives_whoever_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, catalogue = tmp_path / "lab", tmp_path / "lock.json"
    folder.mkdir()
    with TasksOverHttp(folder) as served:
        write_catalogue(catalogue, {"lab": looked(McpServer("lab", url=served.url))})
        environment = {
            "BRAINQ_APP": "tests.support.brains.mcp_tasks:brain",
            "LAB_URL": served.url,
            "LAB_CATALOGUE": str(catalogue),
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        workers = {"coordinator": 1, "parallel": 1, "serial": 2, "finalizer": 1}
        world = World(tmp_path / "world", workers=workers, environment=environment)
        try:
            world.start()
            handle = world.client.submit("s1", "bees")
            wait_until(lambda: world.status(handle) == "parked", "the call waits", 90)
            (called,) = [json.loads(line) for line in lines(folder, "calls")]
            wait_until(lambda: lines(folder, "gets"), "the server is asked", 90)
            world.kill_the("serial", world.owner_pid(handle))
            before = len(lines(folder, "gets"))
            wait_until(lambda: len(lines(folder, "gets")) > before, "the other worker asks", 90)
            world.kill_all("serial", "coordinator")
            end(folder, "task-1", "completed", text("the report"))
            assert world.status(handle) == "parked"
            world.launch_dead()
            assert handle.result(timeout_s=120).text == "Read: the report"
            assert [json.loads(line) for line in lines(folder, "calls")] == [called]
            assert world.status(handle) == "completed"
            world.done(handle)
            assert world.wiring.state.redis.keys("*tasks:*") == []
        finally:
            world.stop()
