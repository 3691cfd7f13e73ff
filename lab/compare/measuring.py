"""Runs one system: starts it, has it run turns, reads what all its processes have used, and stops it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

from lab.bench.latency import LATENCIES_S
from lab.bench.outcomes import percentile
from lab.compare import turn
from lab.compare.install import ROOT, environment_of, python_of
from lab.compare.serving import DONE, READY
from lab.compare.systems import System

MARK = "COMPARE_RUN"
"""In the environment of a run's processes: with their descendants they are all, servers included."""

WARM_UP_TURNS = 20
STOPS_WITHIN_S = 20.0
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
LOG_TAIL = 600


class RunFailure(Exception):
    """The system did not do what it was asked; `str(failure)` says what it said."""


@dataclass(frozen=True)
class Throughput:
    turns_per_s: float
    cpu_ms_per_turn: float


def throughput(system: System, turns: int, within_s: float) -> Throughput:
    """Measure without latencies: `turns` are submitted at once, and the time ends with the last one's last step.

    Raises RunFailure.
    """
    with _started(system, {}, within_s) as running:
        running.ask(WARM_UP_TURNS)
        running.finish()
        before, began = running.cpu_s(), time.monotonic()
        running.ask(turns)
        took_s, used_s = time.monotonic() - began, running.cpu_s() - before
        running.finish()
    return Throughput(turns / took_s, used_s * 1000 / turns)


def p99_ms(system: System, turns: int, within_s: float) -> float:
    """Measure with latencies, from submit to result of `turns` submitted at once. Raises RunFailure."""
    slow = {f"BENCH_{name.upper()}_S": str(value) for name, value in LATENCIES_S.items()}
    with _started(system, slow, within_s) as running:
        running.ask(WARM_UP_TURNS)
        running.finish()
        running.ask(turns)
        return percentile(running.finish(), 99) * 1000


class _Running:
    def __init__(self, process: subprocess.Popen[str], mark: str, log: Path) -> None:
        self._process, self._mark, self._log, self._asked = process, mark, log, 0

    def ask(self, turns: int) -> None:
        """Have them run, to their end."""
        assert self._process.stdin is not None
        self._asked = turns
        try:
            self._process.stdin.write(f"{turns}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failed("it has ended") from None
        self.expect(DONE)

    def finish(self) -> list[float]:
        """Check the turns that were asked for; their latencies, seconds."""
        return latencies_s(json.loads(self._line()), self._asked)

    def expect(self, word: str) -> None:
        if (said := self._line().strip()) != word:
            raise self._failed(f"it said {said[:200]!r}, not {word!r}")

    def cpu_s(self) -> float:
        """Return the user and system time of the run's processes and of their children that have ended."""
        return sum(cpu_with_ended_children_s(pid) for pid in marked(self._mark))

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise self._failed("it ended")
        return line

    def _failed(self, what: str) -> RunFailure:
        return RunFailure(f"{what}; its log ends: {self._log.read_text(errors='replace')[-LOG_TAIL:].strip()}")


def latencies_s(ended: Sequence[Mapping[str, Any]], asked: int) -> list[float]:
    """Return the latencies of turns as `lab.compare.serving` reports them.

    Raises RunFailure if they are not `asked` reference turns.
    """
    for one in ended:
        if (one["text"], one["calls"], one["final_steps"]) != (turn.ANSWER, 4, len(turn.FINAL_STEPS)):
            raise RunFailure(f"not a reference turn: {one}")
    if len(ended) != asked:
        raise RunFailure(f"{len(ended)} turns ended, not {asked}")
    return [one["latency_s"] for one in ended]


@contextmanager
def _started(system: System, more: Mapping[str, str], within_s: float) -> Generator[_Running]:
    mark = uuid4().hex
    bench = ROOT / ".bench"
    bench.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="vs-", dir=bench, ignore_cleanup_errors=True) as name:
        log = Path(name, "log")
        data = Path(name, "data")
        data.mkdir()
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [python_of(system), "-m", f"lab.compare.rivals.run_{system.module}", data, *system.arguments],
                env={**os.environ, **environment_of(system), **more, MARK: mark},
                cwd=ROOT,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        running = _Running(process, mark, log)
        with _ends_within(process, within_s):
            try:
                running.expect(READY)
                yield running
            finally:
                _stop(process, mark)


@contextmanager
def _ends_within(process: subprocess.Popen[str], within_s: float) -> Generator[None]:
    """Kill the process when its time is up, so that whoever reads from it goes on."""
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _stop(process: subprocess.Popen[str], mark: str) -> None:
    """End its input, which tells it to stop; kill what is still there after a while."""
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOPS_WITHIN_S)
    for pid in marked(mark):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def marked(mark: str) -> set[int]:
    """Return the processes whose environment has this run's mark, and all their descendants.

    Postgres and Redis write their titles over their environment. A process whose parent has ended has no descendants to
    follow.
    """
    wanted = f"{MARK}={mark}".encode()
    found: set[int] = set()
    parents: dict[int, int] = {}
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with suppress(OSError):
                parents[int(path.name)] = int(_stat_fields(path)[1])
                if wanted in (path / "environ").read_bytes().split(b"\0"):
                    found.add(int(path.name))
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def cpu_with_ended_children_s(pid: int) -> float:
    """Return the CPU time of a process and its ended children.

    Returns 0 if the process has ended, because its parent then has its time.
    """
    try:
        return sum(int(field) for field in _stat_fields(Path(f"/proc/{pid}"))[11:15]) / TICKS_A_SECOND
    except OSError:
        return 0.0


def _stat_fields(process: Path) -> list[str]:
    """Return the fields after the name in brackets, which may contain spaces.

    The parent is the second field, and utime to cstime are the 12th to 15th.
    """
    return (process / "stat").read_text().rpartition(")")[2].split()
