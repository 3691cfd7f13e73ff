"""The brain of the shop, with two tools. `brainq dev` runs it."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from brainq import Brain, Effect, Limits, RunContext

brain = Brain(
    "shop",
    # offline:rules is not a language model but a set of rules: it calls the tools that a message names. It needs no
    # key.
    model=os.environ.get("SHOP_MODEL") or "offline:rules",
    system_prompt="You look after the shop's stock. Say what you changed.",
    # What a turn may use at most: model calls and seconds. You can limit tokens and money, too: docs/guides/limits.md.
    limits=Limits(max_steps=20, timeout_s=300),
)

# Each pool is a process of its own, so tools share data in a file or a database, never in a variable.
DATABASE = Path(os.environ.get("BRAINQ_DATA_DIR") or Path(__file__).with_name(".brainq")) / "stock.db"


@contextmanager
def stock() -> Generator[sqlite3.Connection]:
    """Open the stock's database for one transaction."""
    DATABASE.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(DATABASE, timeout=10)) as rows, rows:
        rows.execute("CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
        rows.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)")
        rows.execute("INSERT OR IGNORE INTO stock VALUES ('apples', 3), ('pears', 12)")
        yield rows


@brain.tool(effect=Effect.READ_ONLY)
def count(item: str) -> int:
    """Return how many pieces of an item are in stock."""
    with stock() as rows:
        found = rows.execute("SELECT amount FROM stock WHERE item = ?", (item,)).fetchone()
    return found[0] if found else 0


@brain.tool(effect=Effect.LOCAL_WRITE, resources=("item:{item}",), idempotent=True, timeout_s=10)
def restock(item: str, amount: int, ctx: RunContext) -> str:
    """Order more of an item."""
    with stock() as rows:
        # If a worker dies and the call runs again, it has the same key, so nothing is ordered twice.
        if rows.execute("INSERT OR IGNORE INTO orders VALUES (?)", (ctx.idempotency_key,)).rowcount:
            rows.execute("INSERT OR IGNORE INTO stock VALUES (?, 0)", (item,))
            rows.execute("UPDATE stock SET amount = amount + ? WHERE item = ?", (amount, item))
    return f"{item}: now {count(item)}"
