"""A payment server made with the SDK: `python payments.py FOLDER`. Its ledger is a SQLite file in FOLDER.

It does not declare its tool's effects, and takes an idempotency key as an argument, as payment services do. While a
file `before-CUSTOMER` or `after-CUSTOMER` is in FOLDER, a charge waits there, before or after it enters the ledger.
"""

from __future__ import annotations

import os
import sqlite3
import sys
import time
from pathlib import Path

from mcp.server import MCPServer

FOLDER = Path(sys.argv[1])
payments = MCPServer("payments")


def wait_at(place: str) -> None:
    gate = FOLDER / place
    if gate.exists():
        (FOLDER / f"{place}.waits").write_text(f"{os.getpid()} {os.getppid()}")
    while gate.exists():
        time.sleep(0.01)


@payments.tool()
def charge(customer: str, cents: int, idempotency_key: str | None = None) -> str:
    """Charge a customer. The same key again gives the charge that was made with it."""
    wait_at(f"before-{customer}")
    with sqlite3.connect(FOLDER / "ledger.db", timeout=30) as ledger:
        ledger.execute("BEGIN IMMEDIATE")
        ledger.execute("INSERT INTO asked VALUES (?, ?)", (customer, idempotency_key))
        found = ledger.execute("SELECT id FROM charges WHERE key = ?", (idempotency_key,)).fetchone()
        if found is None:
            found = ledger.execute(
                "INSERT INTO charges (customer, cents, key) VALUES (?, ?, ?) RETURNING id",
                (customer, cents, idempotency_key),
            ).fetchone()
    wait_at(f"after-{customer}")
    return f"charge {found[0]}"


def main() -> None:
    with sqlite3.connect(FOLDER / "ledger.db", timeout=30) as ledger:
        ledger.execute("CREATE TABLE IF NOT EXISTS asked (customer TEXT, key TEXT)")
        ledger.execute(
            "CREATE TABLE IF NOT EXISTS charges (id INTEGER PRIMARY KEY, customer TEXT, cents INTEGER, key TEXT UNIQUE)"
        )
    payments.run("stdio")


if __name__ == "__main__":
    main()
