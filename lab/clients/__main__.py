"""`python -m lab.clients [CLIENT ...]`: runs the clients, records what came of them, and writes docs/wires/clients.md.

Without names all are run; the records of the others stay as they are. Exit code 1 when a feature fails,
2 when a client is not installed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from lab.clients.matrix import CLIENTS, PAGE, RESULTS, OfficialClient, Record, read_results, write_results
from lab.clients.page import page
from lab.clients.running import deployed, run_client, why_not


def main(arguments: Sequence[str] | None = None) -> int:
    names = [client.name for client in CLIENTS]
    parser = argparse.ArgumentParser(
        prog="python -m lab.clients", description="Which features of official clients work?"
    )
    parser.add_argument("clients", nargs="*", metavar="CLIENT", help=f"any of {', '.join(names)}")
    given = parser.parse_args(arguments).clients
    if unknown := set(given) - set(names):
        parser.error(f"no such client: {min(unknown)}; there are {', '.join(names)}")
    chosen = [client for client in CLIENTS if not given or client.name in given]
    console = Console(highlight=False)
    if missing := [why for client in chosen if (why := why_not(client))]:
        console.print("\n".join(missing), style="red")
        return 2
    found = _run(chosen, console)
    records = {**(read_results(RESULTS.read_text()) if RESULTS.exists() else {}), **found}
    RESULTS.write_text(write_results(records))
    PAGE.write_text(page(records))
    console.print(f"written: {RESULTS.name}, {PAGE.name}")
    return int(any(seen.outcome == "fails" for record in found.values() for seen in record.features.values()))


def _run(chosen: Sequence[OfficialClient], console: Console) -> dict[str, Record]:
    found: dict[str, Record] = {}
    with tempfile.TemporaryDirectory(prefix="bq-clients-") as name, deployed(Path(name)) as where:
        for client in chosen:
            record = found[client.name] = run_client(client, where)
            console.print(f"{client.title} {record.version}", style="bold")
            for feature, seen in record.features.items():
                console.print(f"  {feature}: {seen.outcome} {seen.why}", markup=False)
    return found


if __name__ == "__main__":
    sys.exit(main())
