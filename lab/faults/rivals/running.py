"""Runs one rival in one setting: its processes, its turns, the kill, and the outcome."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from uuid import uuid4

from brainq.app.devserver.ports import free_port
from lab.compare.install import ROOT, environment_of, python_of
from lab.faults.effects import Effects, NotSeen, effect_server, wait_for
from lab.faults.rivals.desk import BEFORE, EFFECTS, WRITE
from lab.faults.rivals.systems import Rival, Setting

PORTS = ("redis", "temporal", "ingress", "admin", "fabric", "service")
STARTS_WITHIN_S, ENDS_WITHIN_S = 600.0, 180.0
SETTLES_S = 5.0
"""After the last ending, or the wait for it, until writes are counted: one may still be on its way."""


@dataclass
class Outcome:
    """Of one rival in one setting. Each write is in one of `once`, `twice` and `never` by the server's log alone.

    silent   turns that completed without a word, though their write never ran, or ran twice
    stuck    turns that had no ending three minutes after the kill
    """

    writes: int = 0
    once: int = 0
    twice: int = 0
    never: int = 0
    silent: int = 0
    stuck: int = 0
    endings: dict[str, int] = field(default_factory=dict[str, int])
    failure: str = ""


class RunningRival:
    """The processes of a rival. Each leads a group, so that its children die with it."""

    def __init__(self, rival: Rival, setting: Setting, directory: Path, effects: Effects) -> None:
        self._rival, self._setting, self._directory = rival, setting, directory
        self.effects = effects
        self.processes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, role: str) -> None:
        arguments = [role, str(self._directory), self._setting.name]
        with (self._directory / f"{role}.log").open("ab") as log:
            self.processes[role] = subprocess.Popen(
                [python_of(self._rival.system), "-m", self._rival.module, *arguments],
                cwd=ROOT,
                env={**os.environ, **environment_of(self._rival.system), EFFECTS: self.effects.url},
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_worker(self) -> int:
        """Kill the worker's whole group with SIGKILL, and return the exit code."""
        worker = self.processes["worker"]
        os.killpg(worker.pid, signal.SIGKILL)
        return worker.wait()

    def begin(self, turn: str) -> None:
        (self._directory / "turns" / turn).touch()

    def ending(self, turn: str) -> dict[str, str] | None:
        path = self._directory / "ended" / turn
        return json.loads(path.read_text()) if path.exists() else None

    def logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-600:] for path in self._directory.glob("*.log"))

    def stop(self) -> None:
        """Stop the clients and workers first. A server ends when its input does."""
        for role, process in reversed(self.processes.items()):
            assert process.stdin is not None
            process.stdin.close()
            if role == "server":
                try:
                    process.wait(20.0)
                except subprocess.TimeoutExpired:
                    pass
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()


@contextmanager
def running(rival: Rival, setting: Setting, directory: Path) -> Generator[RunningRival]:
    """Run a rival with an effect server of its own inside the block."""
    for name in ("turns", "ended"):
        (directory / name).mkdir()
    (directory / "ports.json").write_text(json.dumps({name: free_port() for name in PORTS}))
    with ExitStack() as stack:
        log = directory / "effects"
        log.mkdir()
        made = RunningRival(rival, setting, directory, stack.enter_context(effect_server(log)))
        stack.callback(made.stop)
        for role in rival.roles:
            made.start(role)
        yield made


def run_rival(rival: Rival, setting: Setting, directory: Path, writes: int) -> Outcome:
    """Kill the worker once while this many writes run, and once while as many are about to run."""
    outcome = Outcome()
    with running(rival, setting, directory) as made:
        try:
            calm = uuid4().hex
            made.begin(calm)
            wait_for(lambda: made.ending(calm), "a turn without a fault ends", STARTS_WITHIN_S)
            for place in (WRITE, BEFORE):
                _kill_at(place, made, outcome, writes)
        except (NotSeen, OSError) as error:
            outcome.failure = f"{error}\n{made.logs()}"
    return outcome


def _kill_at(place: str, made: RunningRival, outcome: Outcome, writes: int) -> None:
    turns = [uuid4().hex for _ in range(writes)]
    for turn in turns:
        made.effects.hold(place, turn)
        made.begin(turn)
    for turn in turns:
        made.effects.wait_seen(place, turn, timeout_s=STARTS_WITHIN_S)
    if made.kill_worker() != -signal.SIGKILL:
        raise NotSeen("the worker was not killed")
    made.effects.release()
    made.start("worker")
    end = time.monotonic() + ENDS_WITHIN_S
    while time.monotonic() < end and not all(made.ending(turn) for turn in turns):
        time.sleep(0.1)
    time.sleep(SETTLES_S)
    written = made.effects.writes()
    for turn in turns:
        count(outcome, written[turn], made.ending(turn))


def count(outcome: Outcome, ran: int, ended: dict[str, str] | None) -> None:
    """One more write that was cut off: it ran so often, and the turn's ending is this; None: it has none."""
    outcome.writes += 1
    outcome.never += ran == 0
    outcome.once += ran == 1
    outcome.twice += ran > 1
    if ended is None:
        outcome.stuck += 1
        return
    is_told = ended["ending"] != "completed" or ended["said"] == "unknown"
    outcome.silent += ran != 1 and not is_told
    name = "unknown" if ended["said"] == "unknown" else ended["ending"]
    outcome.endings[name] = outcome.endings.get(name, 0) + 1
