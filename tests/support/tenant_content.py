"""A tenant with content of every kind, and searches for this content that do not use brainq."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from sqlalchemy import select

from brainq.adapters.sql.records import SqlRecords
from brainq.adapters.sql.tables import metadata
from brainq.client.handle import TurnHandle
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.file import File
from brainq.contracts.memory import MemoryItem, Observation
from tests.support.brains.obedient import script
from tests.support.pump import Pump

PNG = b"\x89PNG\r\n\x1a\n"


def fill(pump: Pump, tenant: str, word: str) -> list[TurnHandle]:
    """Create a tenant with an ended turn, one that waits for a person, one behind it, input, a file, a schedule and
    knowledge."""
    ended = pump.submit(
        f"{tenant}1",
        script([("write", {"name": word})], final=f"{word} done"),
        attachments=[File(PNG + word.encode(), "image/png", "a")],
    )
    pump.finish(ended)
    parked = pump.submit(f"{tenant}2", script([("write", {"name": word})], final=word), readiness=False)
    pump.drain()
    queued = pump.submit(f"{tenant}2", script(final=word))
    parked.steer(f"and {word}")
    records = SqlRecords(pump.wiring.store)
    for step, scope, sid in (("memory", f"{tenant}ann", f"{tenant}1"), ("memory2", "shared", f"{tenant}1")):
        claim = FinalStepClaim(sid, ended.turn_id, step, "me", 1, 1)
        records.record_memories(claim, scope, [MemoryItem(kind="fact", text=f"Likes {word}.")])
    claim = FinalStepClaim(f"{tenant}1", ended.turn_id, "learner", "me", 1, 1)
    records.record_observations(claim, f"{tenant}ann", "m:1", [Observation(kind="source", text=f"{word}.example")])
    pump.client.schedule(f"{tenant}daily", f"{tenant}report", word, when=timedelta(days=1))
    return [ended, parked, queued]


def rows_with(pump: Pump, word: str) -> list[str]:
    """Return the tables of which a row contains the word, or its bytes."""
    with pump.wiring.store.engine.connect() as connection:
        return [
            table.name
            for table in metadata.sorted_tables
            for row in connection.execute(select(table))
            if any(word.encode() in (value if isinstance(value, bytes) else str(value).encode()) for value in row)
        ]


def bytes_with(directory: Path, word: str) -> list[str]:
    """Return the files that contain the word."""
    return [path.name for path in directory.rglob("*") if path.is_file() and word.encode() in path.read_bytes()]
