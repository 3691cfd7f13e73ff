"""The brain of shop, with two tools. `brainq dev` runs it."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from brainq import Brain, Effect, Limits, RunContext

brain = Brain(
    "shop",
    # offline:rules is a set of rules, not a language model: it calls the tools a message names. It needs no key.
    model=os.environ.get("SHOP_MODEL") or "offline:rules",
    system_prompt="You look after the shop's stock. Say what you changed.",
    # What a turn may use at most: model calls, and seconds. Tokens and money have limits, too: docs/guides/limits.md.
    limits=Limits(max_steps=20, timeout_s=300),
)

# Each pool is a process of its own: what tools share is in a file or a database, never in a variable.
# In a container the project is read-only, and BRAINQ_DATA_DIR a volume.
DATABASE = Path(os.environ.get("BRAINQ_DATA_DIR") or Path(__file__).with_name(".brainq")) / "stock.db"


@contextmanager
def stock() -> Generator[sqlite3.Connection]:
    """The stock, in one transaction."""
    DATABASE.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(DATABASE, timeout=10)) as rows, rows:
        rows.execute("CREATE TABLE IF NOT EXISTS stock (item TEXT PRIMARY KEY, amount INTEGER NOT NULL)")
        rows.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)")
        rows.execute("INSERT OR IGNORE INTO stock VALUES ('apples', 3), ('pears', 12)")
        yield rows


@brain.tool(effect=Effect.READ_ONLY)
def count(item: str) -> int:
    """How many of an item are in stock."""
    with stock() as rows:
        found = rows.execute("SELECT amount FROM stock WHERE item = ?", (item,)).fetchone()
    return found[0] if found else 0


@brain.tool(effect=Effect.LOCAL_WRITE, resources=("item:{item}",), idempotent=True, timeout_s=10)
def restock(item: str, amount: int, ctx: RunContext) -> str:
    """Order more of an item."""
    with stock() as rows:
        # A call that is run again, because its worker died, comes with the same key and orders nothing twice.
        if rows.execute("INSERT OR IGNORE INTO orders VALUES (?)", (ctx.idempotency_key,)).rowcount:
            rows.execute("INSERT OR IGNORE INTO stock VALUES (?, 0)", (item,))
            rows.execute("UPDATE stock SET amount = amount + ? WHERE item = ?", (amount, item))
    return f"{item}: now {count(item)}"
