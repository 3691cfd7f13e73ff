"""What dies is started again, a stop is asked for by a flag, and one process at a time runs a pool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from brainq.app.devserver.locks import exclusive_pools
from brainq.app.devserver.redis_server import known_redis
from brainq.cli.dev import supervisor as supervising
from brainq.cli.dev.supervisor import StopSignals, Supervisor, describe_exit, restart_wait_s, start_all
from brainq.errors import AlreadyRuns, ExitCode, SetupError, kind_of
from brainq.runtime.settings.deployment import load_settings
from tests.support.module_time import replace_time
from tests.support.stand_in import stand_in


@dataclass
class FakeChild:
    name: str
    is_running: bool = True
    is_ready: bool = True
    exit_code: int | None = None
    launched: list[float] = field(default_factory=list[float])
    clock: list[float] = field(default_factory=lambda: [0.0])

    def launch(self) -> None:
        self.launched.append(self.clock[0])
        self.is_running, self.is_ready, self.exit_code = True, False, None

    def die(self, code: int) -> None:
        self.is_running, self.is_ready, self.exit_code = False, False, code


def test_who_starts_on_a_directory_is_named_until_it_is_over(tmp_path: Path) -> None:
    settings = load_settings(redis_url=None, data_dir=tmp_path)
    with pytest.raises(SetupError, match="no `brainq dev` runs on"):
        known_redis(settings)
    with (
        exclusive_pools(tmp_path, ["coordinator"], "brainq dev"),
        pytest.raises(SetupError, match=rf"`brainq dev` \(process {os.getpid()}\) is starting .*try again"),
    ):
        known_redis(settings)
    with pytest.raises(SetupError, match="no `brainq dev` runs on"):
        known_redis(settings)


def test_who_lacks_the_cells_that_run_on_a_directory_is_told_how_to_have_them(tmp_path: Path) -> None:
    settings = load_settings(redis_url=None, data_dir=tmp_path)
    with (
        exclusive_pools(tmp_path, ["coordinator"], "brainq dev --cells"),
        pytest.raises(SetupError, match=rf"export BRAINQ_CELLS={tmp_path}/cells\.json"),
    ):
        known_redis(settings)


def test_what_dies_is_started_again_and_both_are_said() -> None:
    clock, said = [0.0], list[str]()
    dying, living = FakeChild("serial", clock=clock), FakeChild("parallel", clock=clock)
    supervisor = Supervisor([stand_in(dying), stand_in(living)], said.append, lambda: clock[0])
    supervisor.check_all()
    assert said == []
    dying.die(-9)
    supervisor.check_all()
    assert said == ["process serial ended (signal SIGKILL); restarting it now"]
    assert (dying.launched, living.launched) == ([0.0], [])
    supervisor.check_all()
    assert len(said) == 1, "it runs, and is not ready yet"
    dying.is_ready = True
    supervisor.check_all()
    supervisor.check_all()
    assert said[1:] == ["process serial is running again"]


class Starting:
    """A worker of which each look finds what comes next in `looks`: `starts`, `ready` or `dead`; the last one stays."""

    log_path = "serial.log"

    def __init__(self, name: str, *looks: str) -> None:
        self.name, self._looks, self._now = name, iter(looks), ""

    def launch(self) -> None: ...

    def log_tail(self) -> str:
        return "no such brain"

    @property
    def is_ready(self) -> bool:
        self._now = next(self._looks, self._now)
        return self._now == "ready"

    @property
    def is_running(self) -> bool:
        return self._now != "dead"


def start(*workers: Starting) -> bool:
    return start_all(cast(Any, SimpleNamespace(workers=workers)), [], StopSignals())


def test_a_worker_that_a_turn_kills_while_others_start_has_started() -> None:
    assert start(Starting("serial", "ready", "dead"), Starting("finalizer", "starts", "starts", "ready"))


def test_a_worker_that_ends_before_it_is_ready_did_not_start() -> None:
    with pytest.raises(SetupError, match=r"serial did not start; serial\.log ends:\nno such brain"):
        start(Starting("parallel", "ready"), Starting("serial", "starts", "dead"))


def test_what_keeps_dying_is_started_after_growing_waits_and_never_given_up() -> None:
    clock, said = [0.0], list[str]()
    child = FakeChild("coordinator", clock=clock)
    supervisor = Supervisor([stand_in(child)], said.append, lambda: clock[0])
    child.die(1)
    while len(child.launched) < 9:
        starts = len(child.launched)
        supervisor.check_all()
        if len(child.launched) > starts:
            child.die(1)
        clock[0] += 0.5
    gaps = [later - earlier for earlier, later in zip(child.launched, child.launched[1:], strict=False)]
    assert gaps == [1.5, 2.5, 4.5, 8.5, 16.5, 30.5, 30.5, 30.5]
    assert len(said) == 9
    assert said[3] == "process coordinator ended (exit code 1); restarting it in 4 s"


def test_what_ran_for_long_is_started_at_once_again() -> None:
    clock, said = [0.0], list[str]()
    child = FakeChild("coordinator", clock=clock)
    supervisor = Supervisor([stand_in(child)], said.append, lambda: clock[0])
    for _ in range(4):
        clock[0] += 3600
        child.die(-15)
        supervisor.check_all()
    assert said == ["process coordinator ended (signal SIGTERM); restarting it now"] * 4


def test_waits_before_a_start() -> None:
    assert [restart_wait_s(deaths) for deaths in (1, 2, 3, 7, 10_000)] == [0.0, 1.0, 2.0, 30.0, 30.0]


def test_how_a_process_ended_is_said() -> None:
    assert [describe_exit(code) for code in (None, 3, -11)] == ["it never started", "exit code 3", "signal SIGSEGV"]


def test_a_signal_sets_a_flag_and_raises_nothing_and_a_second_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    replace_time(monkeypatch, supervising, monotonic=lambda: now[0])
    before = signal.getsignal(signal.SIGTERM)
    with StopSignals() as stop:
        assert not stop.stop_requested
        for number in (signal.SIGINT, signal.SIGTERM):
            os.kill(os.getpid(), number)  # the same Ctrl+C, passed on by a wrapper
        assert stop.stop_requested
        assert not stop.kill_requested
        now[0] += 1
        os.kill(os.getpid(), signal.SIGHUP)
        assert stop.kill_requested
    assert signal.getsignal(signal.SIGTERM) is before


def test_one_process_runs_a_pool_of_a_directory_and_the_next_is_told_which(tmp_path: Path) -> None:
    holding = (
        "import sys; from pathlib import Path; from brainq.app.devserver.locks import exclusive_pools\n"
        "with exclusive_pools(Path(sys.argv[1]), ['serial'], 'brainq up'):\n"
        "    print('holds', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "holds\n"
        with exclusive_pools(tmp_path, ["coordinator"], "brainq up"):
            pass
        with (
            pytest.raises(AlreadyRuns, match=rf"`brainq up` \(process {other.pid}\) already runs the serial") as told,
            exclusive_pools(tmp_path, ["coordinator", "serial"], "brainq dev"),
        ):
            raise AssertionError
        assert kind_of(told.value).exit is ExitCode.REFUSED
        with exclusive_pools(tmp_path, ["coordinator"], "brainq up"):
            pass  # what the refused one had taken is free again
        other.kill()
    with exclusive_pools(tmp_path, ["serial"], "brainq dev"):
        pass  # a killed holder leaves nothing behind


class Refused(FakeChild):
    """One whose next starts the system refuses."""

    refusals = 3

    def launch(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        super().launch()


def test_a_start_that_the_system_refuses_is_tried_again_and_the_others_are_looked_after() -> None:
    clock, said = [0.0], list[str]()
    refused, other = Refused("serial", clock=clock), FakeChild("parallel", clock=clock)
    supervisor = Supervisor([stand_in(refused), stand_in(other)], said.append, lambda: clock[0])
    refused.die(-9)
    other.die(-9)
    for _ in range(20):
        supervisor.check_all()
        clock[0] += 0.5
    assert other.launched == [0.0]
    assert refused.launched == [7.0], "after 1, 2 and 4 s"
    assert said[1] == ("serial could not be started ([Errno 11] Resource temporarily unavailable); retrying in 1 s")
