"""A server's program, as its transport sees it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

from brainq.engine.tools.mcp.stdio_transport import StdioTransport
from tests.support.mcp_servers import faulty, noted
from tests.support.streams import until
from tests.unit.engine.calls.support import is_running


def test_a_program_that_was_killed_has_ended_before_the_loop_is_told(tmp_path: Path) -> None:
    async def look() -> tuple[int, bool, bool, bool]:
        transport = StdioTransport(faulty(tmp_path))
        async with transport:
            await until(lambda: noted(tmp_path, "starts"), "the program says its pid")
            [pid] = map(int, noted(tmp_path, "starts"))
            before = transport.has_ended
            os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):  # a thread of asyncio's has reaped it
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # the loop does not run meanwhile
            return pid, before, transport.lost.is_set(), transport.has_ended

    pid, before, was_told, has_ended = asyncio.run(look())
    assert (before, was_told, has_ended) == (False, False, True)
    assert not is_running(pid)
