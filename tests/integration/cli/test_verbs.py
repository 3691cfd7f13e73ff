"""The commands of a producer: results from outside, a session's queue, all fields of a submit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain, Effect, Pending, RunContext, ScriptedProvider
from brainq.cli.connect import newest_turns
from brainq.client.client import Client
from brainq.client.connection import wiring_of
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.errors import ExitCode
from brainq.testing import calls, says
from tests.support.commands import Brainq
from tests.support.pump import Pump

TOKENS: list[str] = []


def obey(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says(f"It came: {request.messages[-1].content}")
    return calls(("order", {}))


def ordering() -> Brain:
    brain = Brain("orders", ScriptedProvider(rules=obey))

    @brain.tool(effect=Effect.READ_ONLY)
    def order(context: RunContext) -> Any:
        "Ask the shop."
        TOKENS.append(context.outside_token())
        return Pending(TOKENS[-1], timeout_s=600)

    return brain


@pytest.fixture
def parked(settings: Any, redis_url: str) -> Iterator[Callable[[], tuple[Pump, Any]]]:
    """A turn whose call waits for somebody outside; its token is the last of TOKENS."""
    pump = Pump(ordering(), redis_url, settings.sql_url.get_secret_value())

    def make() -> tuple[Pump, Any]:
        handle = pump.submit("s1", "Order one.")
        pump.drain()
        return pump, handle

    yield make
    pump.close()


def test_a_call_is_completed_by_its_token_once(
    brainq: Brainq, parked: Callable[[], tuple[Pump, Any]], tmp_path: Path
) -> None:
    pump, handle = parked()
    (tmp_path / "token.txt").write_text(TOKENS[-1] + "\n")
    ran = brainq("complete", "@token.txt", '{"parcels": 2}')
    assert (ran.code, ran.err) == (0, "settled: the call has its result, and its turn continues\n")
    assert '{"parcels": 2}' in pump.finish(handle).text.replace('":2', '": 2')
    again = brainq("complete", "@token.txt")
    assert again.code == ExitCode.REFUSED
    assert TOKENS[-1] not in again.err
    assert brainq("complete", "@token.txt", "no json").code == ExitCode.USAGE


def test_a_call_is_failed_by_its_token(brainq: Brainq, parked: Callable[[], tuple[Pump, Any]]) -> None:
    pump, handle = parked()
    ran = brainq("fail", TOKENS[-1], "the courier lost it", "--json")
    assert json.loads(ran.out) == {"taken": "settled"}
    assert "the courier lost it" in pump.finish(handle).text


def test_a_sessions_turns_are_interrupted_dropped_and_read(brainq: Brainq, client: Client) -> None:
    live, first, second = (client.submit("s1", text).turn_id for text in ("one", "two", "three"))
    assert brainq("drop", live).code == ExitCode.REFUSED
    assert json.loads(brainq("drop", first, "--json").out)["dropped"] is True
    ran = brainq("interrupt", "s1", "--reason", "never mind")
    assert live in ran.err
    assert brainq("interrupt", "quiet").code == ExitCode.NOT_FOUND
    said = brainq("history", "s1").out
    assert said.index(live) < said.index(second)
    assert "user   three" in said
    compaction = brainq("compact", "s1").out.strip()
    request = wiring_of(client).store.turns.request(compaction)
    assert request is not None
    assert request.kind == "compact"


def test_a_flag_is_made_ready(brainq: Brainq, client: Client) -> None:
    flag = client.session("s1").readiness("the photo is uploaded")
    assert brainq("ready", "s1", flag.id).code == 0
    assert brainq("ready", "s1", "flag-of-nobody").code == ExitCode.NOT_FOUND


def test_a_submit_carries_every_field(brainq: Brainq, client: Client, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"type": "object"}')
    (tmp_path / "prompt.txt").write_text("Be brief.")
    ran = brainq(
        *("submit", "s1", "hi", "--no-wait", "--kind", "review", "--seed", "empty"),
        *("--metadata", '{"order": 17}', "--output-schema", "@schema.json", "--system-prompt", "@prompt.txt"),
        *("--prompt-id", "p", "--prompt-version", "2", "--prompt-tag", "a", "--prompt-tag", "b"),
        *(
            "--skill-context",
            "skill",
            "--cwd",
            "/srv",
            "--citations",
            "--not-ready",
            "--provider",
            "offline",
            "--model",
            "rules",
        ),
        *("--option", "temperature=0", "--option", 'stop=["a", "b"]', "--option", "reasoning_effort=low"),
    )
    request = wiring_of(client).store.turns.request(ran.out.strip())
    assert request is not None, ran.err
    assert (request.kind, request.seed, request.metadata) == ("review", "empty", {"order": 17})
    assert (request.output_schema, request.system_prompt) == ({"type": "object"}, "Be brief.")
    assert (request.prompt_id, request.prompt_version, request.prompt_tags) == ("p", "2", ("a", "b"))
    assert (request.skill_context, request.cwd, request.provider) == ("skill", "/srv", "offline")
    assert (request.show_citations, request.readiness) == (True, False)
    said = {"temperature": 0.0, "stop": ("a", "b"), "reasoning_effort": "low"}
    assert request.options.explicit() == said
    for wrong in ("temperature", "=1", "temprature=1", "temperature=hot"):
        assert brainq("submit", "s1", "hi", "--option", wrong).code == ExitCode.USAGE
    assert brainq("submit", "s1", "hi", "--metadata", "[1]").code == ExitCode.USAGE
    assert brainq("submit", "s1", "hi", "--kind", "odd").code == ExitCode.USAGE


def test_the_shell_is_offered_the_newest_turns(client: Client, brainq: Brainq) -> None:
    turn_id = client.submit("s1", "one").turn_id
    assert newest_turns(turn_id[:6]) == [turn_id]
    assert newest_turns("zz") == []


def test_a_stop_of_a_tenant_that_has_no_turn_is_doubted(client: Client, brainq: Brainq) -> None:
    client.submit("acme:1", "Hello.")
    assert "has no turns yet" not in brainq("stop", "tenant", "acme").err
    assert "tenant acne has no turns yet" in brainq("stop", "tenant", "acne").err
