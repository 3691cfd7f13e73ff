"""The suite of faults at its smallest: a few of them, once each, with real processes; the whole is `make faults`."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from lab.faults.page import BEGINS, ENDS, rows_of
from lab.faults.stage import no_network

ROOT = Path(__file__).parents[2]
FAULTS = ("kill-write", "net-reset", "redis-kill", *([] if no_network() else ["host-vanishes"]))


@pytest.mark.full
@pytest.mark.timeout(600)
def test_faults_fire_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(f"{BEGINS}\n{ENDS}\n")
    run = f"FAULTS_OF={uuid.uuid4().hex}"  # all that it starts inherits this; other runs on the machine do not
    name, _, value = run.partition("=")
    ran = subprocess.run(
        [sys.executable, "-m", "lab.faults", *FAULTS, "--quick", "--rate", "1", "--page", str(page)],
        cwd=ROOT,
        env={**os.environ, name: value},
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    rows = rows_of(page.read_text())
    assert list(rows) == list(FAULTS)
    cells = {name: [cell.strip() for cell in line.strip("|").split("|")] for name, line in rows.items()}
    assert {name: found[2] for name, found in cells.items()} == dict.fromkeys(FAULTS, "1/1")
    assert all(int(found[3]) > 0 and found[4].startswith("0/0/") for found in cells.values())
    assert cells["kill-write"][4] == "0/0/1", "the write that was cut off is unknown, and did not run again"
    assert not left_behind(run), "every process is gone"


def left_behind(run: str) -> list[str]:
    """Processes that have this in their environment."""
    found: list[str] = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            if run.encode() in (directory / "environ").read_bytes():
                found.append((directory / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found
