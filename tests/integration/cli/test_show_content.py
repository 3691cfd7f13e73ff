"""What `brainq show` says of a turn's calls, retries and its end, while it lives and afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq import Brain, Effect, ScriptedProvider
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.asking.retry import RetryPolicy, stream_with_retry
from brainq.engine.models.asking.stall_clock import Deadline
from brainq.engine.models.scripted import calls, says
from brainq.errors import ExitCode, ProviderError
from tests.support.commands import Brainq
from tests.support.pump import Pump


class Busy(ScriptedProvider):
    """Refuses its first request once, as a service that is rate limited."""

    refused = False

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        def attempt() -> Any:
            if not self.refused:
                self.refused = True
                raise ProviderError("slow down", kind="rate_limit", retryable=True)
            yield ModelChunk(reply=self.generate(request))

        policy = RetryPolicy(first_s=0.001, draw=lambda: 1.0)
        return stream_with_retry(attempt, Deadline(10), policy)


def obey(request: ModelRequest) -> ModelReply:
    if request.step > 1:
        return says("Both were looked at.")
    return calls(("look", {"path": "tea.md"}), ("look", {"path": "lost.md"}))


def brain_of(redact: bool) -> Brain:
    brain = Brain("looker", Busy(rules=obey), redact_logs=redact)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(path: str) -> str:
        "Look."
        if path == "lost.md":
            raise FileNotFoundError(path)
        return f"{path} says: green, at four"

    return brain


@pytest.fixture
def pump_of(settings: Any, redis_url: str) -> Iterator[Callable[[bool], Pump]]:
    made: list[Pump] = []

    def make(redact: bool) -> Pump:
        made.append(Pump(brain_of(redact), redis_url, settings.sql_url.get_secret_value()))
        return made[-1]

    yield make
    for pump in made:
        pump.close()


def test_arguments_results_and_retries_are_shown_live_and_afterwards(
    brainq: Brainq, pump_of: Callable[[bool], Pump]
) -> None:
    pump = pump_of(False)
    handle = pump.submit("s1", "Look twice.")
    pump.drain("brainq.turns")
    live = brainq("show", handle.turn_id).out
    assert 'c1-0  look({"path": "tea.md"})' in live
    assert "rate_limit" in live
    pump.finish(handle)
    page = brainq("show", handle.turn_id).out
    assert "→ tea.md says: green, at four" in page
    assert 'c1-1  look({"path": "lost.md"})' in page
    found = json.loads(brainq("show", handle.turn_id, "--json").out)
    assert next(m["content"] for m in found["messages"] if m["role"] == "tool") == "tea.md says: green, at four"
    first, second = found["calls"]
    assert (first["id"], first["arguments"], first["result"]) == (
        f"{handle.turn_id}-c1-0",
        {"path": "tea.md"},
        "tea.md says: green, at four",
    )
    assert (second["status"], second["is_error"], second["is_kept"]) == ("failed", True, True)
    assert found["retries"] == [{"step": 1, "attempt": 1, "kind": "rate_limit", "wait_ms": 1}]
    events = {str(event.kind): event.data for event in handle.events()}
    assert events["call.running"]["tool"] == events["call.ended"]["tool"] == "look"


def test_one_call_is_shown_whole(brainq: Brainq, pump_of: Callable[[bool], Pump]) -> None:
    pump = pump_of(False)
    handle = pump.submit("s1", "Look twice.", request_key="key-1")
    pump.drain("brainq.turns")
    live = brainq("show", f"{handle.turn_id[:20]}-c1-0").out
    assert "status    dispatched" in live
    assert '"path": "tea.md"' in live
    pump.finish(handle)
    page = brainq("show", f"{handle.turn_id}-c1-0").out
    assert f"call      {handle.turn_id}-c1-0" in page
    assert "tea.md says: green, at four" in page
    found = json.loads(brainq("show", "key-1.c1-1", "--json").out)
    assert (found["id"], found["arguments"]) == (f"{handle.turn_id}-c1-1", {"path": "lost.md"})
    lost = brainq("show", f"{handle.turn_id}-c7-0")
    assert (lost.code, "has no call c7-0" in lost.err) == (ExitCode.NOT_FOUND, True)
    assert brainq("show", "nobody-c1-0").code == ExitCode.NOT_FOUND


def test_a_turn_that_is_called_like_a_call_is_a_turn(brainq: Brainq, pump_of: Callable[[bool], Pump]) -> None:
    pump_of(False).submit("s1", "Look twice.", request_key="key-c1-0")
    assert "message   Look twice." in brainq("show", "key-c1-0").out


def test_a_brain_that_keeps_no_content_says_so(brainq: Brainq, pump_of: Callable[[bool], Pump]) -> None:
    pump = pump_of(True)
    handle = pump.submit("s1", "Look twice.")
    pump.finish(handle)
    page = brainq("show", handle.turn_id).out
    assert "are not kept: it has ended, and its brain keeps content out of SQL (redact_logs)" in page
    assert "green" not in page.partition("\nanswer")[0]
    assert "look" in page.partition("\nanswer")[0]
    found = json.loads(brainq("show", handle.turn_id, "--json").out)
    assert (found["messages"], [call["is_kept"] for call in found["calls"]]) == ([], [False, False])
    assert "redact_logs" in found["no_messages"]
    assert "not kept" in brainq("show", f"{handle.turn_id}-c1-0").out


def test_the_reason_of_a_cancel_is_no_error(brainq: Brainq, pump_of: Callable[[bool], Pump]) -> None:
    pump = pump_of(False)
    handle = pump.submit("s1", "Look twice.")
    pump.drain("brainq.turns")
    handle.cancel("she changed her mind")
    pump.finish(handle)
    page = brainq("show", handle.turn_id).out
    assert "reason    she changed her mind" in page
    assert "error     " not in page
