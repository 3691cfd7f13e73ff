"""Run whole turns on a virtual clock, with faults drawn from a seed.

python -m lab.simulate --seed 7 --turns 1000     print a report; exit code 1 if a promise was broken
python -m lab.simulate --seed 7 --world 3        repeat only that world of the run, as the report shows it
"""

from __future__ import annotations

import argparse
import logging
import sys

from lab.simulate.faults import Chances
from lab.simulate.report import Report
from lab.simulate.simulation import TURNS_A_WORLD, Simulation, sizes_of

TELL_EVERY_WORLDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lab.simulate", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", default="1", help="any word; the same seed repeats the same run (default 1)")
    parser.add_argument(
        "--turns", type=int, default=1000, help="turns that producers submit; calls start more (default 1000)"
    )
    parser.add_argument(
        "--world", type=int, default=None, help=f"run only this world, from 0, of {TURNS_A_WORLD} turns"
    )
    parser.add_argument("--trace", action="store_true", help="print the end of each world's trace")
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the machines log each fault, and there are many here
    report = Report()
    with Simulation() as simulation:
        for number, turns in enumerate(sizes_of(given.turns)):
            if given.world is None or number == given.world:
                simulation.run_world(f"{given.seed}:{number}", turns, Chances(), report)
                if report.worlds % TELL_EVERY_WORLDS == 0:
                    print(f"{report.turns} turns, {report.cpu_s:.0f} s of CPU", file=sys.stderr, flush=True)
            if report.broken or given.trace:
                print("\n".join(report.trace))
            if report.broken:
                print(f"again: python -m lab.simulate --seed {given.seed} --turns {given.turns} --world {number}")
                break
    print("\n".join(report.lines()))
    return 1 if report.broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
