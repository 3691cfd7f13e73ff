"""The airline's brain, as the workers load it: `BRAINQ_APP=examples.airline.agent:brain`."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from brainq import Brain, Effect, Limits, RunContext
from brainq.engine.tools.tool import Tool, make_tool
from examples.airline.database import AirlineDatabase
from examples.airline.model import RecordedModel
from examples.airline.package import TOOL_NAMES, WRITE_TOOLS, declarations
from examples.airline.recorded import recorded_path
from examples.airline.wire import Wire, WireModel, WireName

# What was recorded has up to 20 steps and 68 calls a turn, and conversations of any length.
LIMITS = Limits(timeout_s=600.0, max_steps=40, max_tool_calls=200, max_context_tokens=10_000_000)


@dataclass(frozen=True, slots=True)
class Options:
    """What the workers of one replay share, handed to them in their environment.

    recorded     the file with the recorded sessions
    database     the airline's SQLite file
    idempotent   the write tools say so, and the database honours their keys
    pause_s      how long a write takes besides its work, half of it before and half after its commit: a
                 worker that is killed is then often killed with a write in its hands
    wire         where the recorded replies are asked for; None: from the file, without a model server
    """

    recorded: Path
    database: Path
    idempotent: bool = True
    pause_s: float = 0.0
    wire: Wire | None = None

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Options:
        name, _, url = environment.get("AIRLINE_WIRE", "").partition(" ")
        return cls(
            recorded=recorded_path(),
            database=Path(environment.get("AIRLINE_DB") or ".brainq/airline.db"),
            idempotent=environment.get("AIRLINE_IDEMPOTENT", "1") == "1",
            pause_s=float(environment.get("AIRLINE_PAUSE_S") or 0),
            wire=Wire(cast("WireName", name), url) if name else None,
        )

    def environment(self) -> dict[str, str]:
        """What `read` makes these options of."""
        return {
            "AIRLINE_RECORDED": str(self.recorded),
            "AIRLINE_DB": str(self.database),
            "AIRLINE_IDEMPOTENT": "1" if self.idempotent else "0",
            "AIRLINE_PAUSE_S": str(self.pause_s),
            "AIRLINE_WIRE": f"{self.wire.name} {self.wire.url}" if self.wire else "",
        }


def make_brain(options: Options) -> Brain:
    """The brain: the recorded model, and the airline's real tools on the shared database."""
    database = AirlineDatabase(options.database, honours_keys=options.idempotent)
    recorded = RecordedModel(options.recorded)
    return Brain(
        "airline",
        WireModel(recorded, options.wire.provider()) if options.wire else recorded.provider(),
        "You help the customers of an airline.",
        tools=[_tool(name, database, options) for name in TOOL_NAMES],
        limits=LIMITS,
    )


def _tool(name: str, database: AirlineDatabase, options: Options) -> Tool:
    is_write = name in WRITE_TOOLS

    def read(context: RunContext, **arguments: Any) -> str:
        return database.read(context.session_id, name, arguments)

    def write(context: RunContext, **arguments: Any) -> str:
        time.sleep(options.pause_s / 2)
        try:
            return database.write(context.session_id, context.idempotency_key, name, arguments)
        finally:
            time.sleep(options.pause_s / 2)

    description, parameters = declarations()[name]
    return make_tool(
        write if is_write else read,
        name=name,
        description=description,
        parameters=parameters,
        effect=Effect.LOCAL_WRITE if is_write else Effect.READ_ONLY,
        idempotent=is_write and options.idempotent,
    )


brain = make_brain(Options.read(os.environ))
