"""The benchmark itself, at the smallest size: it runs real turns, and its figures are all there.

No time is asserted: that is what `make bench` is for, on a machine that does nothing else.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab.bench.outcomes import percentile
from lab.bench.report import NAMES, summary, targets

# Twelve worker processes are started one after the other: seconds on a free machine, a minute on a busy one.
pytestmark = pytest.mark.timeout(300)

ROOT = Path(__file__).parents[2]
CPU_OF = {"coordinator", "parallel", "serial", "finalizer", "redis", "producer", "total"}


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Three turns of everything."""
    path = tmp_path_factory.mktemp("bench") / "latest.json"
    ran = subprocess.run(
        [sys.executable, "-m", "lab.bench", "--turns", "3", "--scale", "0.01", "--json", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "turns/s" in ran.stdout
    assert list(path.parent.iterdir()) == [path], "the run left files behind"
    return json.loads(path.read_text())


@pytest.mark.full
def test_every_figure_is_there(figures: dict[str, Any]) -> None:
    assert set(figures) == {*NAMES, "details"}
    assert [name for name in NAMES if figures[name] is None] == []
    assert set(figures["cpu_ms_per_turn"]) == CPU_OF
    assert {"cpu", "cores", "python", "redis_server", "load_before"} <= figures["machine"].keys()
    assert figures["ideal_ms"] == 2300


@pytest.mark.full
def test_the_turns_were_reference_turns(figures: dict[str, Any]) -> None:
    """The run checks each turn itself; here, from the outside, that it did not check nothing."""
    plain, events = figures["details"]["throughput"], figures["details"]["throughput_events"]
    assert plain["turns"] == events["turns"] == 3
    # A submit; 7 of the coordinator; 4 calls claimed and settled, one of them started; of the finalizer a claim, what
    # the turn said, and 7 ends of its 8 steps: the log and the result end together.
    assert plain["redis_per_turn"]["scripts"] >= 26
    assert plain["redis_per_turn"]["commands"] > plain["redis_per_turn"]["scripts"]
    assert "publish" not in plain["redis_per_turn"]["top_commands"]
    assert events["redis_per_turn"]["bytes_in"] > plain["redis_per_turn"]["bytes_in"]
    # A no-op task is a message through a worker: neither nothing nor as much as a turn. Few turns are no measure.
    assert plain["noop_ms"] > 0
    assert plain["redis_per_turn"]["scripts"] < plain["redis_per_turn"]["lua_commands"]
    late = figures["details"]["latency"]
    assert [late[name]["turns"] for name in ("60", "300", "300_at_once")] == [2, 3, 3]
    # Sleeps never end early: whoever is faster than the ideal has skipped one.
    assert all(late[name]["p50_ms"] >= 2300 for name in ("60", "300", "300_at_once"))
    assert plain["idle"]["turns"] == 2


@pytest.mark.full
def test_the_profile_says_where_the_time_goes(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "lab.bench", "--profile", "finalizer", "--turns", "2", "--json", str(tmp_path / "x")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(r"finalizer +[\d.]+ +for \d+ doorbells", ran.stdout)
    assert "tottime" in ran.stdout
    assert (tmp_path / "profile-finalizer.pstats").exists()


def test_targets_are_judged_only_by_what_was_measured() -> None:
    nothing = summary(machine={}, ideal_ms=2300, plain=None, events=None, latency=None)
    assert {target.verdict(nothing) for target in targets(nothing)} == {""}
    measured = {**nothing, "turns_per_s": 120.0, "turns_per_s_events": 59.0, "p99_ms_300_at_once": 4700}
    verdicts = {target.name: target.verdict(measured) for target in targets(measured)}
    assert "met" in verdicts["turns_per_s"]
    assert "missed" in verdicts["turns_per_s_events"]
    assert "met" in verdicts["p99_ms_300_at_once"]  # 2300 + 300 / 120 s = 4800


def test_a_percentile_is_a_value_that_was_measured() -> None:
    values = [float(value) for value in range(1, 61)]
    assert percentile(values, 50) == 30
    assert percentile(values, 99) == 60
    assert percentile([7.0], 99) == 7


def printed(directory: Path, module: str, *options: str) -> dict[str, Any]:
    """What a benchmark that is run there prints."""
    ran = subprocess.run(
        [sys.executable, "-m", module, *options],
        cwd=directory,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.full
def test_standing_turns_are_parked_and_watched(tmp_path: Path) -> None:
    figures = printed(tmp_path, "lab.bench.standing", "--turns", "3", "--first", "0.5", "--settled", "0.5")
    assert (figures["turns"], figures["first"]["late_looks"], figures["settled"]["late_looks"]) == (3, 0, 0)
    assert set(figures["settled"]["cores"]) == CPU_OF - {"producer"}


@pytest.mark.full
def test_streams_are_followed_beside_a_live_turn(tmp_path: Path) -> None:
    figures = printed(tmp_path, "lab.bench.streams", "--streams", "3", "--turns", "2", "--watched", "0.5")
    assert figures["streams"] == 3
    assert figures["beside"]["events"] > 10
    assert set(figures["idle_cores"]["followed"]) == {"client", "redis"}


@pytest.mark.full
def test_a_gateway_is_asked_and_its_streams_are_held(tmp_path: Path) -> None:
    small = ("--streams", "3", "--asked", "8", "--turns", "2", "--watched", "0.5")
    figures = printed(tmp_path, "lab.bench.gateway", *small)
    assert (figures["first_byte"]["streams"], figures["streams"]["streams"]) == (3, 3)
    for asked in figures["requests"].values():
        assert {found["requests"] for found in asked.values()} == {8}
    assert figures["requests"]["submit"]["gateway"]["cpu_ms_each"] > 0
    assert figures["live_beside_streams"]["events"] > 10
