"""A server's process: started in a process group of its own, and ended with all it started, also when the worker
is killed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from os import PathLike

from mcp.client.stdio import get_default_environment

from brainq.tools.process_guard import ProcessGuard

LINE_CHUNK = 64 * 1024
CLOSE_S = 2.0  # for a server to end by itself once its stdin is closed
TERM_S = 1.0  # after SIGTERM
ORPHAN_S = 0.5  # for a server to end by its stdin's end when the worker was killed; far shorter than a lease

_guards: dict[int, ProcessGuard] = {}
"""Process id -> its guard: what a fork inherits is the parent's."""


def _guard() -> ProcessGuard:
    return _guards.setdefault(os.getpid(), ProcessGuard(ORPHAN_S))


async def start_process(
    command: Sequence[str], env: Mapping[str, str], cwd: str | PathLike[str] | None
) -> asyncio.subprocess.Process:
    """Raises OSError where the program cannot be started."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**get_default_environment(), **env},
        cwd=cwd,
        limit=LINE_CHUNK,
        start_new_session=True,
    )
    try:
        _guard().add(process.pid)
    except OSError:
        await end_process(process)
        raise
    return process


def has_exited(process: asyncio.subprocess.Process) -> bool:
    """What the system knows now; the loop may not have been told yet. The loop still reaps it."""
    if process.returncode is not None:
        return True
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # reaped meanwhile
        return True


async def end_process(process: asyncio.subprocess.Process) -> None:
    """As the protocol has it: close its stdin, wait, SIGTERM, wait, SIGKILL. When this returns, the group is gone."""
    if process.stdin is not None:
        process.stdin.close()
    if not await _ended(process, CLOSE_S):
        _signal(process, signal.SIGTERM)
        await _ended(process, TERM_S)
    _signal(process, signal.SIGKILL)
    await _ended(process, TERM_S)
    _guard().forget(process.pid)
    _guard().close_if_idle()


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    # The group's number is the leader's; it cannot be another's while a member is left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


async def _ended(process: asyncio.subprocess.Process, timeout_s: float) -> bool:
    # Not process.wait(): that waits for the pipes, too, which a child may have kept open.
    ends_at = asyncio.get_running_loop().time() + timeout_s
    while process.returncode is None:
        if asyncio.get_running_loop().time() >= ends_at:
            return False
        await asyncio.sleep(0.01)
    return True
