"""One turn of many steps: how full the model's context gets, and what the turn takes of Redis' memory.

In one process and without Celery, as `--profile`: nothing here depends on time.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from brainq import Brain, Effect, Limits, ScriptedProvider
from brainq.app.devserver.redis_server import EmbeddedServer, socket_path
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import calls, says
from brainq.runtime.settings.deployment import load_settings
from brainq.runtime.text.estimate import estimate_request
from lab.bench.outcomes import BenchFailure
from lab.bench.pump import drain

STEPS = 200
WINDOW = 8000  # max_context_tokens
RESULT = "Item: two nails, some dust and a note that says to look further on. " * 20  # 1.4 kB
SESSION = "long"


class Walker:
    """A model that looks once a step, and keeps how many tokens it was asked with."""

    def __init__(self, steps: int) -> None:
        self.tokens: list[int] = []
        self._steps = steps
        self.provider = ScriptedProvider(rules=self._reply, auxiliary=lambda _: says("Dust and nails so far."))

    def _reply(self, request: ModelRequest) -> ModelReply:
        self.tokens.append(estimate_request(request))
        return says("Nothing.") if request.step == self._steps else calls(("look", {"place": request.step}))


def long_turns(directory: Path) -> dict[str, Any]:
    """Measure turns of 20 and of STEPS steps, and of STEPS steps without compaction in a window
    that holds everything."""
    return {
        "20_steps": _turn(directory / "20", 20, WINDOW),
        f"{STEPS}_steps": _turn(directory / str(STEPS), STEPS, WINDOW),
        f"{STEPS}_steps_uncompacted": _turn(directory / "all", STEPS, 1_000_000),
    }


def _turn(directory: Path, steps: int, window: int) -> dict[str, Any]:
    walker = Walker(steps)
    limits = Limits(max_steps=steps, max_tool_calls=steps, max_context_tokens=window, timeout_s=3600)
    brain = Brain("walker", walker.provider, "Find the lamp.", limits=limits)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(place: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a place."""
        return f"{place}. {RESULT}"

    with EmbeddedServer(directory / "redis", unix_socket=socket_path(directory / "redis")) as server:
        settings = load_settings(redis_url=server.url, sql_url=f"sqlite:///{directory.absolute() / 'long.db'}")
        with Client(settings, brain) as client:
            most = 0

            def weigh() -> None:
                nonlocal most
                most = max(most, _bytes(client))

            handle = client.submit(SESSION, "Where is the lamp?")
            drain(wiring_of(client), weigh)
            result = handle.result(timeout_s=10)
    if result.steps != steps:
        raise BenchFailure(f"the long turn ended after {result.steps} of {steps} steps: {result.stop_reason}")
    return {
        "steps": steps,
        "max_context_tokens": window,
        "most_tokens": max(walker.tokens),
        "compactions": sum(spend.kind == "compaction" for spend in result.spends),
        "most_redis_bytes": most,
    }


def _bytes(client: Client) -> int:
    """Return the current size of the session and its turn in Redis, by MEMORY USAGE of each key."""
    redis: Any = wiring_of(client).state.redis
    keys = redis.keys(wiring_of(client).state.keys.of_session(SESSION, "*"))
    return sum(redis.memory_usage(key, samples=0) or 0 for key in keys)
