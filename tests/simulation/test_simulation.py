"""The simulation: promises hold under its faults, a seed is one run, and it finds bugs. See lab/simulate."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from brainq.adapters.redis.script_text import LUA, NAMES, read_script
from brainq.app.wiring import doorbells
from brainq.runtime.settings.deployment import Settings
from lab.simulate.clock import VIRTUAL_NOW, with_virtual_clock
from lab.simulate.faults import Chances
from lab.simulate.report import Report
from lab.simulate.simulation import TURNS_A_WORLD, Simulation, sizes_of
from tests.support.model.mutants import MUTANTS

ROOT = Path(__file__).parents[2]
SAMPLE = 10
HARD = Chances(
    request_lost=0.003,
    reply_lost=0.003,
    dies_before=0.002,
    dies_after=0.002,
    freezes=0.001,
    sql_lost=0.003,
    bell_repeated=0.05,
)
HARD_TURNS = 60
HARD_SEEDS = ("many", "busy", "10", *map(str, range(7)))
FOUND_AT_ONCE = ("step_commit without its fence",)
FOUND_SOON = (
    "result_publish twice",
    "call_claim takes what runs already",
    "turn_end without its fence",
    "call_settle leaves no line",
)
SEEDS = tuple(range(1, 9))
TURNS_A_SEED = 2_500
MOST_FAULTS = {"dies before", "dies after", "frozen", "redis lost", "sql lost", "redis away", "sql away", "slow"}
BELLS = {"bell lost", "bell repeated", "bell late"}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The machines log each fault."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def run(simulation: Simulation, seed: str, turns: int, chances: Chances | None = None) -> Report:
    report = Report()
    for number, size in enumerate(sizes_of(turns)):
        simulation.run_world(f"{seed}:{number}", size, chances or Chances(), report)
    return report


def told(report: Report) -> str:
    return "\n".join([*report.broken, *report.trace])


def test_a_seed_is_the_same_run_each_time_and_another_is_another() -> None:
    with Simulation() as simulation:
        first, again, other = (run(simulation, seed, SAMPLE) for seed in ("a", "a", "b"))
    assert not first.broken, told(first)
    assert (first.digest, first.fired, first.endings) == (again.digest, again.fired, again.endings)
    assert first.digest != other.digest


def test_scripts_are_those_of_production_but_for_the_clock() -> None:
    bells = doorbells(Settings(redis_url=None))
    real, virtual = (LUA / "lib/now.lua").read_text().splitlines(), VIRTUAL_NOW.splitlines()
    assert real[1] == "local clock = redis.call('TIME')"
    assert real[2:] == virtual[2:], "what follows from the clock is the same"
    for name in NAMES:
        production = read_script(name, bells.generated()).text
        simulated = read_script(name, with_virtual_clock(bells).generated()).text
        for line, other in zip(real[:2], virtual[:2], strict=True):
            simulated = simulated.replace(other, line)
        assert simulated == production


def test_without_faults_every_turn_ends_at_once() -> None:
    with Simulation() as simulation:
        never = {name: 0.0 for name in Chances.__dataclass_fields__ if not name.endswith("_s")}
        calm = replace(Chances(), **never, redis_away_every_s=1e9, sql_away_every_s=1e9)
        report = run(simulation, "calm", SAMPLE, calm)
    assert not report.broken, told(report)
    assert not report.fired


@pytest.mark.full
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_promises_hold_in_thousands_of_turns(seed: int) -> None:
    """20,000 in all. A failure names its world, which `python -m lab.simulate` runs again."""
    with Simulation() as simulation:
        report = run(simulation, str(seed), TURNS_A_SEED)
    assert not report.broken, told(report)
    assert set(report.fired) >= MOST_FAULTS | BELLS


def test_promises_hold_under_many_faults() -> None:
    with Simulation() as simulation:
        report = run(simulation, "busy", HARD_TURNS, HARD)
    assert not report.broken, told(report)
    assert set(report.fired) >= {"dies before", "dies after", "frozen", "redis lost", "drains"} | BELLS
    assert set(report.continued) == {"coordinator", "parallel", "serial", "finalizer"}


@pytest.mark.full
def test_promises_hold_in_small_worlds_with_many_faults() -> None:
    """Those in which broken scripts are found."""
    with Simulation() as simulation:
        for seed in HARD_SEEDS:
            report = run(simulation, seed, HARD_TURNS, HARD)
            assert not report.broken, told(report)


@contextmanager
def seeded(script: str, old: str, new: str) -> Generator[Simulation]:
    """With a bug in a script."""

    def mutate(of: str, text: str) -> str:
        assert of != script or old in text, f"{script}.lua no longer contains {old!r}"
        return text.replace(old, new) if of == script else text

    with Simulation(mutate) as simulation:
        yield simulation


def finds(simulation: Simulation) -> bool:
    return any(run(simulation, seed, HARD_TURNS, HARD).broken for seed in HARD_SEEDS)


@pytest.mark.parametrize("mutant", FOUND_AT_ONCE)
def test_a_broken_script_is_found(mutant: str) -> None:
    with seeded(*MUTANTS[mutant]) as simulation:
        assert finds(simulation)


@pytest.mark.full
@pytest.mark.parametrize("mutant", FOUND_SOON)
def test_a_script_that_is_seldom_wrong_is_found(mutant: str) -> None:
    with seeded(*MUTANTS[mutant]) as simulation:
        assert finds(simulation)


def test_the_command_prints_one_report_and_says_by_its_exit_code_whether_promises_held() -> None:
    command = [sys.executable, "-m", "lab.simulate", "--seed", "7", "--turns", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "broken promises: 0" in done.stdout
    assert sizes_of(2 * TURNS_A_WORLD + 1) == [TURNS_A_WORLD, TURNS_A_WORLD, 1]
