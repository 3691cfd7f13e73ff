"""Turns with tools of servers: who starts a server, and when."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from brainq import Brain, Effect
from brainq.adapters.celery import names
from brainq.contracts.status import TraceStatus
from brainq.engine.tools.mcp.catalogue import PinnedServer, write_catalogue
from brainq.testing import ScriptedProvider, calls, says
from tests.support.mcp_servers import faulty, noted
from tests.support.pump import Pump


@pytest.fixture
def brain(tmp_path: Path, faulty_pinned: PinnedServer) -> Brain:
    write_catalogue(tmp_path / "mcp.lock.json", {"faulty": faulty_pinned})
    replies = [
        calls(("faulty__echo", {"text": "hi"}), ("faulty__die_write", {}), ("faulty__secret", {})),
        says("Done."),
    ]
    model = ScriptedProvider(replies)
    return Brain("mcp", model, mcp=[faulty(tmp_path)], mcp_catalogue=tmp_path / "mcp.lock.json")


def test_a_server_is_started_by_the_first_call_and_not_by_the_turn(
    pumps: Callable[..., Pump], brain: Brain, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    coordinator = pumps(brain, owner="coordinator", serves=[])
    parallel = pumps(brain, owner="parallel", serves=[Effect.READ_ONLY])
    serial = pumps(brain, owner="serial", serves=[Effect.LOCAL_WRITE, Effect.NETWORK, Effect.DESTRUCTIVE])
    handle = coordinator.submit("s1", "go")
    assert coordinator.drain(names.TURNS_QUEUE)
    assert noted(tmp_path, "starts") == []
    try:
        assert parallel.drain(*names.PARALLEL_QUEUES)
        assert len(noted(tmp_path, "starts")) == 1
        assert serial.drain(*names.SERIAL_QUEUES)  # in this process, so with the same server, which dies of it
        assert len(noted(tmp_path, "starts")) == 1
        assert parallel.drain(*names.PARALLEL_QUEUES)
        assert len(noted(tmp_path, "starts")) == 2
        assert coordinator.drain(names.TURNS_QUEUE, names.FINALIZE_QUEUE)
        assert handle.result(timeout_s=30).text == "Done."
    finally:
        for pump in (parallel, serial):
            pump.wiring.runner.close()
    trace = {entry.tool: entry.status for entry in coordinator.wiring.state.calls.trace("s1", handle.turn_id)}
    assert trace == {
        "faulty__echo": TraceStatus.COMPLETED,
        "faulty__die_write": TraceStatus.UNKNOWN,
        "faulty__secret": TraceStatus.COMPLETED,
    }
    assert noted(tmp_path, "writes") == ["die"]
    kept = b"".join(file.read_bytes() for file in [*tmp_path.glob("brainq.db*"), tmp_path / "mcp.lock.json"])
    assert b"[hidden]" in kept
    assert b"sk-very-secret-1" not in kept + caplog.text.encode()
