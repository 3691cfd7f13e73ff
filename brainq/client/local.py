"""brainq in one program: a client, and the workers of all pools in its threads."""

from __future__ import annotations

import asyncio
import atexit
import builtins
import os
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from brainq.app.devserver.local_fleet import POOLS
from brainq.app.devserver.locks import exclusive_pools, pool_owner, read_holder
from brainq.app.devserver.redis_server import LOCK_FILE, EmbeddedServer, ServerInUseError, socket_path
from brainq.app.local.worker import LocalWorker
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.engine.brain.brains import Brains, BrainsArgument, load_brains, read_brains
from brainq.errors import AlreadyRuns, SetupError
from brainq.runtime.settings.deployment import Settings, load_settings, settings_here

GRACE_S = 10.0  # for what runs, and for the steps after results, once the block has ended
CUT_GRACE_S = 1.0  # the same after Ctrl+C, or another error
SERVER_ENDS_S = 10.0  # for the Redis of a program that was killed, which writes its data first
LOOK_EVERY_S = 0.02
_at_work = threading.Lock()
"""Held while this process works: its pools' threads are counted once a process."""


class LocalClient(Client):
    """A client whose turns run in this program. `brainq.local` returns one.

    All verbs are those of Client. Leave its `with` block, or call `close`, to stop working.
    """

    def __init__(self, settings: Settings, brains: Brains, exits: ExitStack) -> None:
        super().__init__(settings, brains)
        self._exits = exits
        self._process = os.getpid()
        self._worker = LocalWorker(wiring_of(self))
        atexit.register(self.close)  # a notebook has no block to leave
        try:
            self._worker.begin()
        except BaseException:
            self._close(0.0)
            raise

    def close(self) -> None:
        """Stop working, within some 10 seconds. Idempotent.

        What runs may end, and the steps after results. Other turns continue when the directory is opened again.
        """
        self._close(GRACE_S)

    def __exit__(self, *error: object) -> None:
        self._close(GRACE_S if error[0] is None else CUT_GRACE_S)

    def _close(self, grace_s: float) -> None:
        atexit.unregister(self.close)
        if os.getpid() != self._process:
            return  # a fork's: its parent works on
        with self._exits:
            self._exits.callback(super().close)
            self._worker.close(grace_s)


def local(brain: BrainsArgument | None = None, *, dir: str | Path | None = "") -> LocalClient:  # noqa: A002
    """Start working in this program, and return its client.

        with brainq.local(brain) as client:
            print(client.run("monday", "What is on my list?").text)

    An embedded Redis is started as a child process, which ends with this one. Everything else runs in threads. What is
    accepted survives this program: killed and started again with the same directory, it continues.

    brain: one brain or several; by default that of BRAINQ_APP.
    dir: the directory of Redis and SQLite; by default BRAINQ_DATA_DIR, which is `.brainq` in the working directory.
        Commands such as `brainq show` work there meanwhile. None uses a temporary one, which is removed at the end.

    A process has one local client at a time. All its threads may use it.

    Raises AlreadyRuns, which names the other program, if one works on the directory: use a `Client` there instead.
    Raises AlreadyRuns if this process has a local client already. Raises SetupError if there is no Redis server to
    start, if a model cannot be used, or within a running event loop, which its verbs would block.
    """
    _require_no_loop()
    settings = settings_here()
    brains = load_brains(settings.app) if brain is None else read_brains(brain)
    with ExitStack() as exits:
        exits.enter_context(alone_in_process())
        directory = Path(exits.enter_context(_temporary()) if dir is None else dir or settings.data_dir).absolute()
        exits.enter_context(_alone(directory))
        server = exits.enter_context(_server(directory / "redis"))
        return LocalClient(_local_settings(settings, directory, server.url, brains), brains, exits.pop_all())


def _require_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    if not hasattr(builtins, "__IPYTHON__"):  # a notebook always has a loop, and its cells may block it
        raise SetupError(
            "brainq.local was called inside a running event loop, which its verbs would block; call it first, `with "
            "brainq.local(brain): asyncio.run(main())`, and use `async with brainq.AsyncClient(brain=brain)` in main"
        )


@contextmanager
def alone_in_process() -> Generator[None]:
    """Have the pools of this process for oneself. Raises AlreadyRuns if a local client, or a test's run, has them."""
    if not _at_work.acquire(blocking=False):
        raise AlreadyRuns(
            "this process has a local client already; use that one, in any thread, or leave its `with` block first"
        )
    try:
        yield
    finally:
        _at_work.release()


@contextmanager
def _server(data: Path) -> Generator[EmbeddedServer]:
    """Start Redis. That of a program that was just killed may still write its data, and is waited for."""
    end = time.monotonic() + SERVER_ENDS_S
    while True:
        server = EmbeddedServer(data, unix_socket=socket_path(data))
        try:
            server.start()
            break
        except ServerInUseError:
            if _is_alive(int(read_holder(data / LOCK_FILE).get("pid", 0))) or time.monotonic() > end:
                raise
        time.sleep(LOOK_EVERY_S)
    try:
        yield server
    finally:
        server.stop()


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return pid > 0


@contextmanager
def _temporary() -> Generator[str]:
    with TemporaryDirectory(prefix="brainq-") as directory:
        yield directory


@contextmanager
def _alone(directory: Path) -> Generator[None]:
    """Keep other workers off the directory. Raises AlreadyRuns if there are some."""
    with ExitStack() as held:
        try:
            held.enter_context(exclusive_pools(directory, POOLS, f"brainq.local in {program_name()}"))
        except AlreadyRuns:
            raise AlreadyRuns(
                f"{pool_owner(directory)} already works on {directory}; submit to it with brainq.Client(), stop it, or "
                "give brainq.local another directory: dir=..."
            ) from None
        yield


def program_name() -> str:
    """Return the name of this program's script, for messages."""
    return Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python"


def _local_settings(settings: Settings, directory: Path, redis_url: str, brains: Brains) -> Settings:
    """Return the settings with the servers of this directory."""
    own = {"redis_url": redis_url, "data_dir": directory, "sql_url": "", "broker_url": None, "cells": "", "cell": ""}
    given: dict[str, Any] = {name: getattr(settings, name) for name in settings.model_fields_set if name not in own}
    return load_settings(**{**given, **own, "doorbell": "transactional", "app": brain_reference(brains, settings.app)})


def brain_reference(brains: Brains, otherwise: str) -> str:
    """Return `module:variable` of the brains, or `otherwise` if no module has them.

    Child processes load them by it: those of tools with `isolation="process"`, and of quarantine.
    """
    for name, module in list(sys.modules.items()):
        for variable, value in list(getattr(module, "__dict__", {}).items()):
            if value is brains or (len(brains) == 1 and value is brains.default):
                file = getattr(module, "__file__", None)
                if name != "__main__" or file:
                    return f"{Path(file).stem if name == '__main__' and file else name}:{variable}"
    return otherwise
