"""The units of `ops/systemd`: systemd finds nothing wrong with them, and they start what the Procfile starts."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from brainq.adapters.celery.names import POOL_QUEUES
from brainq.adapters.celery.worker_health import SETUP_EXIT
from brainq.runtime.settings.deployment import ENV_PREFIX, Settings

ROOT = Path(__file__).parents[3]
UNITS = ROOT / "ops" / "systemd"
WORKER, GATEWAY = UNITS / "brainq-worker@.service", UNITS / "brainq-gateway.service"
PROGRAMS = "/opt/brainq/venv/bin"
needs_systemd = pytest.mark.needs(bool(shutil.which("systemd-analyze")), "systemd-analyze")


def unit(path: Path) -> dict[str, dict[str, str]]:
    """Its sections; of a key that is there twice the last value."""
    read = configparser.RawConfigParser(strict=False)
    read.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    read.read(path)
    return {name: dict(read.items(name)) for name in read.sections()}


def command(key: str, instance: str) -> list[str]:
    """A command of the worker's unit as systemd starts it."""
    line = unit(WORKER)["Service"][key]
    line = re.sub(r"%(.)", lambda found: {"%": "%", "i": instance}[found[1]], line)
    return shlex.split(line.replace("$$", "$"))


@needs_systemd
def test_systemd_finds_nothing_wrong(tmp_path: Path) -> None:
    there = Path(sys.executable).parent
    for path in UNITS.iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace(PROGRAMS, str(there)))
    units = [str(tmp_path / path.name) for path in sorted(UNITS.iterdir())]
    verify = ["systemd-analyze", "verify", "--man=no"]
    done = subprocess.run([*verify, *units], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    wrong = tmp_path / "wrong.service"
    wrong.write_text(GATEWAY.read_text().replace(PROGRAMS, str(there)).replace("KillMode=mixed", "KillMod=mixed"))
    done = subprocess.run([*verify, str(wrong)], capture_output=True, text=True, check=False)
    assert "KillMod" in done.stderr, "it reads them"


@pytest.mark.parametrize("pool", POOL_QUEUES)
@pytest.mark.parametrize("number", ["", "-2"])
def test_an_instance_starts_the_worker_of_the_procfile(tmp_path: Path, pool: str, number: str) -> None:
    told = tmp_path / "celery"
    told.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    told.chmod(0o755)
    started = [part.replace(f"{PROGRAMS}/celery", str(told)) for part in command("ExecStart", f"{pool}{number}")]
    found = subprocess.run(started, capture_output=True, text=True, check=True).stdout.split()
    lines = dict(line.split(": ", 1) for line in (ROOT / "Procfile").read_text().splitlines() if line)
    wanted = shlex.split(lines[pool])[1:]
    del wanted[wanted.index("-c") : wanted.index("-c") + 2]  # the app has it from the settings
    assert found == [*wanted[:-1], f"{pool}{number}@%h"]


def test_it_has_started_once_its_ready_file_is_there(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    waits = subprocess.Popen(command("ExecStartPost", "serial"), env={**os.environ, "BRAINQ_READY_FILE": str(ready)})
    try:
        assert waits.poll() is None
        ready.write_text("1")
        assert waits.wait(30) == 0
    finally:
        waits.kill()


def test_the_units_stop_warmly_and_follow_the_target() -> None:
    target = " ".join(re.findall(r"^Wants=(.+)$", (UNITS / "brainq.target").read_text(), re.MULTILINE)).split()
    assert set(target) == {*(f"brainq-worker@{pool}.service" for pool in POOL_QUEUES), GATEWAY.name}
    for path in (WORKER, GATEWAY):
        found = unit(path)
        service = found["Service"]
        assert (found["Unit"]["PartOf"], found["Install"]["WantedBy"]) == ("brainq.target", "brainq.target")
        assert service["KillMode"] == "mixed", "a signal to the children of a worker would stop them first"
        assert "KillSignal" not in service, "SIGTERM is the default"
        assert service["RestartPreventExitStatus"] == str(SETUP_EXIT)
        assert service["Restart"] == "always", "what ends without being asked is started again, whatever its exit code"
        assert found["Unit"]["StartLimitIntervalSec"] == "0", "and however often"
        assert (service["User"], service["NoNewPrivileges"], service["ProtectSystem"]) == ("brainq", "yes", "strict")
        named = re.findall(ENV_PREFIX + r"([A-Z][A-Z_]*[A-Z])\b(?!__)", path.read_text())
        assert {name.lower() for name in named} <= {*Settings.model_fields, "ready_file", "concurrency__pool"}
    assert int(unit(WORKER)["Service"]["TimeoutStopSec"]) >= 150, "as docker-compose.yml gives serial"
    assert int(unit(GATEWAY)["Service"]["TimeoutStopSec"]) > Settings().http_grace_s
    ready = re.search(r"BRAINQ_READY_FILE=%t/(\S+)/ready", unit(WORKER)["Service"]["Environment"])
    assert ready is not None
    assert ready[1] == unit(WORKER)["Service"]["RuntimeDirectory"]
