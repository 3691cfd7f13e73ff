"""Seeds that are known to find a mutant, kept in `killers.json`, which maps a mutant to its first seeds.

A seed draws another schedule once the machines or the model change. If none of a mutant's seeds finds it any more,
`python -m tests.support.model.killers` searches new ones for that mutant alone, and writes the file again.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from brainq.runtime.settings.deployment import Settings
from tests.support.model.bench import PLAIN, Bench
from tests.support.model.mutants import MUTANTS
from tests.support.server import RedisServer

FILE = Path(__file__).with_name("killers.json")
KEPT = 3  # so that a change elsewhere seldom spoils them all
MOST_TRIED = 2000


@contextmanager
def quiet_bench(socket_path: str, settings: Settings = PLAIN) -> Generator[Bench]:
    """Yield a bench on a server with a unix socket, without the logs of rescues, of which a schedule has many."""
    logging.disable(logging.CRITICAL)
    bench = Bench(socket_path, settings)
    try:
        yield bench
    finally:
        bench.close()
        logging.disable(logging.NOTSET)


def known_killers() -> dict[str, list[int]]:
    return json.loads(FILE.read_text())


def still_killing(bench: Bench, mutant: str) -> list[int]:
    """Return the mutant's known seeds that still find it."""
    bench.scripts.replace(*MUTANTS[mutant])
    return [seed for seed in known_killers().get(mutant, []) if bench.breaks(seed)]


def find_killers(bench: Bench, mutant: str, count: int) -> list[int]:
    """Return the first `count` promising seeds that find the mutant, which must be loaded."""
    found: list[int] = []
    for seed in range(MOST_TRIED):
        if bench.breaks(seed):
            found.append(seed)
            if len(found) == count:
                break
    return found


def main() -> None:
    server = RedisServer(unix=True).start()
    found: dict[str, list[int]] = {}
    try:
        for mutant in MUTANTS:
            with quiet_bench(server.socket_path) as bench:
                found[mutant] = still_killing(bench, mutant) or find_killers(bench, mutant, KEPT)
            print(f"{mutant}: {found[mutant] or 'not found'}", flush=True)
    finally:
        server.stop()
    lines = [f"  {json.dumps(mutant)}: {json.dumps(seeds)}" for mutant, seeds in found.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
