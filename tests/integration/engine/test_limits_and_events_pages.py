"""docs/guides/limits.md and docs/guides/events.md agree with the contracts and scripts, and their examples run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from brainq import AsyncClient, Brain, Client, Effect, ScriptedProvider
from brainq.contracts.event import EventKind
from brainq.contracts.turn import Limits, LimitsOverride
from brainq.contracts.typed_events import FIELDS
from brainq.engine.tools.tool import DEFAULT_TIMEOUT_S
from brainq.runtime.settings.deployment import Settings
from brainq.testing import calls, says
from tests.support.pump import Pump

ROOT = Path(__file__).parents[3]
LIMITS = (ROOT / "docs/guides/limits.md").read_text()
EVENTS = (ROOT / "docs/guides/events.md").read_text()
LUA = ROOT / "brainq/adapters/redis/lua"
_EMIT = re.compile(r"'([a-z]+\.[a-z]+|budget|notice)',\s*\{(.*?)\}\)", re.DOTALL)


def rows(page: str, heads: str) -> dict[str, list[str]]:
    """The cells of the table that begins with these heads, by their first cell."""
    found: dict[str, list[str]] = {}
    for line in page.split(heads)[1].splitlines()[2:]:
        if not line.startswith("|"):
            break
        first, *others = [cell.strip() for cell in line.strip("|").split("|")]
        found[first.strip("`")] = others
    return found


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", page, re.DOTALL)


def test_the_page_has_every_kind_of_event_with_its_fields() -> None:
    told = {kind: [fields] for kind, fields in re.findall(r"^- `([a-z.]+)` \(`([^`]+)`\): ", EVENTS, re.MULTILINE)}
    assert {kind: tuple(cells[0].strip("`").split()) for kind, cells in told.items()} == {
        kind.value: FIELDS[kind] for kind in EventKind
    }


def test_the_fields_are_those_the_scripts_tell() -> None:
    told: dict[str, set[str]] = {}
    for path in LUA.rglob("*.lua"):
        for kind, body in _EMIT.findall(path.read_text()):
            told.setdefault(kind, set()).update(re.findall(r"(\w+) = ", body))
    assert len(told) > 20
    assert {kind: set(FIELDS[EventKind(kind)]) for kind in told} == told


def test_the_page_has_every_limit_with_its_default() -> None:
    told = rows(LIMITS, "| limit | default | when it is used up |")
    assert set(told) == set(Limits.model_fields) == set(LimitsOverride.model_fields)
    for name, field in Limits.model_fields.items():
        if field.default is not None:
            assert told[name][0] == f"{field.default:g}", name
        else:
            assert told[name][0].startswith(("none", "as `max_steps`", "the model's own")), name
    assert f"{DEFAULT_TIMEOUT_S:g} s by default" in LIMITS
    assert f"take {Limits().max_steps} steps by default" in LIMITS
    bounds = rows(LIMITS, "| what | limit | beyond the limit |")
    attempts = bounds["attempts of a call whose worker died"][0]
    assert attempts == f"{Settings.model_fields['max_attempts'].default} (`BRAINQ_MAX_ATTEMPTS`)"


def test_the_examples_run(pumps: Callable[..., Pump], capsys: Any) -> None:
    follow, follow_all, stream, citations = blocks(EVENTS)
    names: dict[str, Any] = {}
    for block in (follow, follow_all):
        exec(compile("from __future__ import annotations\n" + block, "events.md", "exec"), names)
    exec(compile(stream, "events.md", "exec"), names)
    exec(compile(citations, "events.md", "exec"), names)
    brain: Brain = names["brain"]
    asked = ScriptedProvider(rules=lambda r: calls(("look_up", {"word": "tea"})) if r.step == 1 else says("A word."))
    told = Brain("teller", asked, tools=list(brain.tools.values()), callbacks=brain.callbacks)
    pump = pumps(told)
    handle = pump.submit("s1", "What is tea?")
    result = pump.finish(handle)
    assert [citation.source for citation in result.local_citations] == ["dictionary.txt"]
    assert [citation.source for citation in result.web_citations] == ["https://example.org/tea"]
    streamed = [line.split(" ", 3) for line in capsys.readouterr().out.splitlines()]
    assert "".join(piece for _, step, _, piece in streamed if step == "2") == "A word."
    names["follow"](pump.client, handle.turn_id)
    assert capsys.readouterr().out == "calls look_up\nended completed answered\n"
    names["show"](pump.client, handle.turn_id)
    assert capsys.readouterr().out.endswith("A word.\n")
    seen = [event.seq for event in handle.events()]
    names["follow"](pump.client, handle.turn_id, after=seen[-2])
    assert capsys.readouterr().out == "ended completed answered\n"
    assert seen == list(range(1, len(seen) + 1))

    async def follow_both() -> list[str]:
        async with AsyncClient(pump.settings, told) as client:
            return await names["follow_all"](client, [handle.turn_id, handle.turn_id])

    assert asyncio.run(follow_both()) == ["A word.", "A word."]
    assert f"{handle.turn_id} has ended" in capsys.readouterr().out


def test_the_limits_example_and_the_limit_of_steps(pumps: Callable[..., Pump]) -> None:
    made, submitted = blocks(LIMITS)
    names: dict[str, Any] = {}
    exec(compile(made, "limits.md", "exec"), names)
    assert names["brain"].limits.max_steps == 12
    assert names["brain"].limits.max_cost_usd == 0.25
    asked = ScriptedProvider(rules=lambda r: calls(("look", {"n": r.step})))
    brain = Brain("digger", asked)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(n: int) -> int:
        """Look."""
        return n

    pump = pumps(brain)
    result = pump.finish(pump.submit("s1", "Dig."))
    assert (result.ending, result.stop_reason, result.steps) == ("completed", "max_steps", Limits().max_steps)
    client: Client = pump.client
    exec(compile(submitted, "limits.md", "exec"), {"client": client})
