"""Two builds at once on one Redis and SQL, under load: rolling forward, blue and green, and back to the older build,
which then runs on what this one has made there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.faults.table.deploys import OLD_BUILD, TwoBuilds

ROOT = Path(__file__).parents[2]


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.needs(not TwoBuilds.why_not(), f"a clone that has build {OLD_BUILD}")
@pytest.mark.parametrize("way", ["forward", "blue-green", "back"])
def test_no_turn_is_lost_and_no_write_is_doubled_or_missing(way: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "lab.upgrade", OLD_BUILD, "--way", way, "--seconds", "4", "--every", "0.4"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.count("replaced") == 8
    found = re.search(r"(\d+) turns, .*; 0 lost, 0 writes doubled, 0 missing", ran.stdout)
    assert found, ran.stdout
    assert int(found[1]) > 20
    if way == "back":
        assert "budget_windows" in ran.stdout
        assert "acts" in ran.stdout
