"""A worker that has done its share is renewed: the new one consumes before the old one stops."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from celery.signals import task_received

from brainq.workers.tasks import renewal, worker_keeper
from brainq.workers.tasks.renewal import RenewalRequest, WorkerBounds
from brainq.workers.tasks.worker_keeper import Keeper
from tests.support.wait import wait_until

WORKER = """
import os, signal, sys, time
from pathlib import Path
def stop(number, frame):
    Path(os.environ["BRAINQ_READY_FILE"]).unlink(missing_ok=True)
    while os.path.exists(sys.argv[1] + "/busy"):
        time.sleep(0.01)
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
if os.path.exists(sys.argv[1] + "/broken"):
    sys.exit(3)
Path(os.environ["BRAINQ_READY_FILE"]).write_text(str(os.getpid()))
wanted = Path(sys.argv[1]) / f"renew-{os.getpid()}"
while not os.path.exists(sys.argv[1] + "/end"):
    if wanted.exists():
        Path(os.environ["BRAINQ_RENEW_FILE"]).write_text("it had 5 turns")
    time.sleep(0.01)
sys.exit(7)
"""


@pytest.mark.parametrize(
    ("turns", "rss_mb", "why"), [(9, 99.0, ""), (10, 0.0, "it has run 10 turns"), (0, 100.0, "it uses 100 MB")]
)
def test_either_bound_is_one(turns: int, rss_mb: float, why: str) -> None:
    assert WorkerBounds(10, 100).why_over(turns, rss_mb) == why


def test_a_bound_that_is_not_set_is_none() -> None:
    assert not WorkerBounds().are_set
    assert WorkerBounds(turns=10).why_over(9, 1e6) == ""
    assert WorkerBounds(rss_mb=50).why_over(10**6, 49) == ""


def test_workers_that_were_started_together_are_not_renewed_together() -> None:
    assert WorkerBounds(1000, 500).lowered(0.1) == WorkerBounds(900, 450)
    assert WorkerBounds(1).lowered(0.1) == WorkerBounds(1), "one turn is the least"


def test_a_worker_counts_different_turns_and_asks_once_it_had_so_many(tmp_path: Path) -> None:
    asked, stopping = tmp_path / "renew", threading.Event()
    stopping.set()
    request = RenewalRequest(WorkerBounds(turns=2), asked, memory_mb=lambda: 0.0, share=lambda: 0.0)
    request.watch(stopping)
    assert not asked.exists()

    task_received.connect(request._count, weak=False)  # pyright: ignore[reportPrivateUsage]
    try:
        for turn_id in ("t-1", "t-1", "t-1"):
            task_received.send(None, request=SimpleNamespace(args=["s", turn_id, 1]))
        assert not request.ask()
        task_received.send(None, request=SimpleNamespace(args=["s", "t-2", 1]))
    finally:
        task_received.disconnect(request._count)  # pyright: ignore[reportPrivateUsage]
    assert request.ask()
    assert asked.read_text() == "it has run 2 turns"


def test_the_memory_of_this_process_is_plausible() -> None:
    assert 10 < renewal.resident_mb() < 10_000


class Kept:
    """A keeper of small workers, stepped by hand."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now = 0.0
        self.code: int | None = None
        self.keeper = Keeper([sys.executable, "-c", WORKER, str(directory)], directory)

    def mark(self, name: str) -> None:
        (self.directory / name).write_text("")

    def until(self, condition: str, found: object = True) -> None:
        def met() -> bool:
            self.code = self.keeper.step(self.now)
            return eval(condition, {"keeper": self.keeper, "code": self.code}) == found

        wait_until(met, condition)

    def pid(self) -> int:
        assert self.keeper.current.process is not None
        return self.keeper.current.process.pid

    def ask(self) -> int:
        self.until("keeper.current.is_ready")
        self.mark(f"renew-{self.pid()}")
        return self.pid()


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Kept]:
    monkeypatch.setenv("BRAINQ_READY_FILE", str(tmp_path / "ready"))
    made = Kept(tmp_path)
    try:
        yield made
    finally:
        for worker in (made.keeper.current, made.keeper.successor, made.keeper.retired):
            if worker is not None and worker.process is not None:
                worker.process.kill()
                worker.process.wait()
                worker.close_pipe()


def test_the_old_one_is_stopped_only_once_the_new_one_consumes(kept: Kept, tmp_path: Path) -> None:
    kept.mark("busy")
    first = kept.ask()
    kept.until("keeper.retired is not None")
    assert kept.pid() != first
    assert kept.keeper.current.is_ready
    os.kill(first, 0)  # it ends what it runs
    assert (tmp_path / "ready").exists(), "to a probe the worker was ready all the time"

    kept.mark(f"renew-{kept.pid()}")
    kept.until("keeper.current.wants_renewal")
    assert kept.keeper.successor is None, "one renewal at a time: the one before is not over"
    (tmp_path / "busy").unlink()
    kept.until("keeper.retired is None")


def test_a_new_one_that_does_not_start_leaves_the_old_one_at_work(kept: Kept) -> None:
    first = kept.ask()
    kept.mark("broken")
    kept.until("keeper.successor is not None")
    kept.until("keeper.successor is None")
    assert kept.pid() == first
    (kept.directory / "broken").unlink()
    kept.keeper.step(kept.now)
    assert kept.keeper.successor is None, "not again at once"
    kept.now += worker_keeper.RETRY_AFTER_S
    kept.until("keeper.retired is not None")
    assert kept.pid() != first


def test_a_machine_without_room_for_a_new_one_leaves_the_old_one_at_work(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker asks for its renewal just when memory is short."""

    def full(_: object) -> None:
        raise OSError(12, "Cannot allocate memory")

    first = kept.ask()
    with monkeypatch.context() as short:
        short.setattr(worker_keeper.KeptWorker, "launch", full)
        kept.until("keeper._retry_at > 0")
    assert (kept.pid(), kept.keeper.successor) == (first, None)
    kept.now += worker_keeper.RETRY_AFTER_S
    kept.until("keeper.retired is not None")


def test_a_worker_that_ends_by_itself_ends_the_keeper_with_its_code(kept: Kept, tmp_path: Path) -> None:
    kept.until("keeper.current.is_ready")
    kept.mark("end")
    kept.until("code", 7)
    assert not (tmp_path / "ready").exists()


@pytest.mark.parametrize(("stopping", "code"), [(True, 0), (False, 1)])
def test_a_worker_that_ends_without_being_asked_is_a_failure(
    kept: Kept, stopping: bool, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.until("keeper.current.is_ready")
    monkeypatch.setattr(kept.keeper, "_is_stopping", stopping)
    kept.keeper.current.send(signal.SIGTERM)  # by somebody else
    kept.until("code", code)


def test_a_ready_file_that_cannot_be_written_is_written_when_it_can(kept: Kept, tmp_path: Path) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(worker_keeper, "mark_ready", full)
        kept.until("keeper.current.is_ready")
        kept.keeper.step(kept.now)
        assert not (tmp_path / "ready").exists()
    kept.keeper.step(kept.now)
    assert (tmp_path / "ready").exists()


def test_a_killed_worker_ends_the_keeper_as_a_shell_says_it(kept: Kept) -> None:
    kept.until("keeper.current.is_ready")
    os.kill(kept.pid(), signal.SIGKILL)
    kept.until("code", 128 + signal.SIGKILL)


def test_a_signal_reaches_old_and_new_and_starts_nothing_more(kept: Kept, tmp_path: Path) -> None:
    kept.mark("busy")
    kept.ask()
    kept.until("keeper.retired is not None")
    kept.keeper.note_signal(signal.SIGTERM)
    kept.until("keeper.current.is_ready", False)
    assert not (tmp_path / "ready").exists(), "it drains"
    (tmp_path / "busy").unlink()
    kept.until("code", 0)
    assert kept.keeper.retired is None


def test_the_keeper_process_ends_its_worker_when_it_is_killed(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    command = [sys.executable, "-m", "brainq.workers.tasks.worker_keeper", sys.executable, "-c"]
    follow = "from brainq.runtime.processes.supervised import follow_owner, mark_ready\nfollow_owner()\nmark_ready()\n"
    pause = "import signal\nsignal.pause()\n"
    keeper = subprocess.Popen([*command, follow + pause], env={**os.environ, "BRAINQ_READY_FILE": str(ready)})
    try:
        wait_until(ready.exists, "the keeper says that its worker is ready")
        assert int(ready.read_text()) == keeper.pid
        (child,) = Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()
    finally:
        keeper.kill()
        keeper.wait()

    def is_gone() -> bool:
        try:
            return Path(f"/proc/{child}/stat").read_text().split()[2] == "Z"
        except FileNotFoundError:
            return True

    wait_until(is_gone, "its worker ends", 30)
