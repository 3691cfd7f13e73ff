"""Worker processes without seconds of imports: they are forked from a parent that has imported everything.

`fork_celery` is a replacement of `brainq.app.devserver.local_fleet.run_celery` for tests. The parent, `python -m
tests.support.zygote`, has one thread and no connection. It is started once per test process, and ends with it.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# What a worker imports beside brainq itself: celery finds these by name when it starts.
PRELOADED = (
    *("celery.bin.celery", "celery.apps.worker", "celery.concurrency.base", "celery.fixups.django"),
    *("celery.worker.autoscale", "celery.worker.components", "celery.worker.control", "celery.events.state"),
    *("celery.worker.consumer", "celery.app.builtins", "celery.backends.base", "celery.loaders.app"),
    *("celery.app.control", "celery.app.events", "kombu.transport.redis", "kombu.asynchronous", "kombu.pidbox"),
    *("sqlalchemy.dialects.sqlite", "sqlalchemy.dialects.postgresql.psycopg", "alembic.command"),
)
CLONE_NEWNET = 0x40000000  # of <sched.h>
UNLOADED = ("brainq.cli", "brainq.gateway", "brainq.adapters.sql.migrations", "brainq.workers")


class ForkedProcess:
    """A worker, with the part of `subprocess.Popen` that a fleet uses."""

    def __init__(self, zygote: Zygote, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None
        self._zygote = zygote

    def poll(self) -> int | None:
        if self.returncode is None:
            self.returncode = self._zygote.ask({"poll": self.pid})
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = None if timeout is None else time.monotonic() + timeout
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() >= end:
                raise subprocess.TimeoutExpired(f"worker {self.pid}", timeout or 0.0)
            time.sleep(0.005)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Zygote:
    """The parent, as the tests see it. It handles one request at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.zygote", str(theirs.fileno())],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
            )
        self._answers = self._socket.makefile("rb")

    def ask(self, question: Mapping[str, Any], files: Sequence[int] = ()) -> Any:
        with self._lock:
            socket.send_fds(self._socket, [b"?"], files)
            self._socket.sendall(json.dumps(question).encode() + b"\n")
            return json.loads(self._answers.readline())

    def close(self) -> None:
        self._answers.close()
        self._socket.close()
        self._process.wait()


def fork_celery(
    celery: Sequence[str], environment: Mapping[str, str], log: int, inherited: int, *, netns: str = ""
) -> Any:
    """Fork a process that does what `python -m celery ...` does, with the file `inherited` left open in it.

    netns: the network namespace of the process. By default it is this process's own.
    """
    zygote = _zygote()
    given = {"celery": [*celery], "environment": {**environment}, "cwd": os.getcwd(), "inherited": inherited}
    given["netns"] = netns
    return ForkedProcess(zygote, zygote.ask(given, (log, inherited)))


@cache
def _zygote() -> Zygote:
    made = Zygote()
    atexit.register(made.close)
    return made


# In the parent.


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Answer requests until the tests are over.

    Returns None in the end, and in each child what the child must become.
    """
    with connection.makefile("rb") as questions:
        while True:
            mark, files, _, _ = socket.recv_fds(connection, 1, 2)
            if not mark:
                return None
            question = json.loads(questions.readline())
            if "poll" in question:
                answer = _code_of(question["poll"])
            else:
                answer = os.fork()
                if answer == 0:
                    return {**question, "files": files}
                for file in files:
                    os.close(file)
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _code_of(pid: int) -> int | None:
    """Return the exit code of a child that is over, as subprocess does."""
    ended, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if ended else None


def become(given: dict[str, Any]) -> None:
    """Become a worker process, with nothing of the parent except its imports."""
    os.setsid()
    if given["netns"]:
        enter_netns(given["netns"])
    log, inherited = given["files"]
    for output in (1, 2):
        os.dup2(log, output)
    if inherited != given["inherited"]:
        os.dup2(inherited, given["inherited"])
    os.set_inheritable(given["inherited"], True)
    os.closerange(3, given["inherited"])
    os.closerange(given["inherited"] + 1, 1024)
    os.environ.clear()
    os.environ.update(given["environment"])
    os.chdir(given["cwd"])
    places = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [given["cwd"], *(place for place in places if place)]
    sys.argv = ["celery", *given["celery"]]
    import_module("celery.__main__").main()


def enter_netns(name: str) -> None:
    """Put this process's sockets into a network namespace that `ip netns` made. Raises OSError."""
    with Path("/run/netns", name).open() as space:
        if ctypes.CDLL(None, use_errno=True).setns(space.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"cannot enter the network namespace {name}")


def preload() -> None:
    import brainq

    for module in pkgutil.walk_packages(brainq.__path__, "brainq.", onerror=lambda _: None):
        if not module.name.startswith(UNLOADED):
            try:
                import_module(module.name)
            except ImportError:  # of an extra that is not installed
                pass
    for name in PRELOADED:
        import_module(name)


def main() -> None:
    connection = socket.socket(fileno=int(sys.argv[1]))
    preload()
    gc.collect()
    gc.freeze()
    given = serve(connection)
    if given is not None:
        connection.detach()
        become(given)


if __name__ == "__main__":
    main()
