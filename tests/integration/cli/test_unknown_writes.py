"""What an operator is shown of a write that may or may not have happened."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from brainq import Brain, Effect, ScriptedProvider
from brainq.client.handle import TurnHandle
from brainq.contracts.call import ToolSuccess
from brainq.contracts.claim import CallClaim, CallRef
from brainq.engine.models.scripted import calls, says
from brainq.errors import ExitCode
from tests.support.commands import Brainq
from tests.support.pump import Pump
from tests.support.wait import wait_until

ARGUMENTS = {"to": "ann", "amount": 12}


@pytest.fixture
def pump(settings: Any, redis_url: str) -> Iterator[Pump]:
    brain = Brain(
        "shop", ScriptedProvider(rules=lambda asked: says("Paid?") if asked.step > 1 else calls(("pay", ARGUMENTS)))
    )

    @brain.tool(effect=Effect.NETWORK)
    def pay(to: str, amount: int) -> str:
        "Pay."
        return f"{amount} paid to {to}"

    made = Pump(brain, redis_url, settings.sql_url.get_secret_value())
    yield made
    made.close()


def claim_the_payment(pump: Pump, handle: TurnHandle) -> None:
    """Let a worker claim the payment of a turn, and start it."""
    session, turn_id = handle.session_id, handle.turn_id
    claimed = pump.wiring.state.calls.claim(CallRef(session, turn_id, "c1-0"), 1, "dead")
    assert isinstance(claimed, CallClaim)
    assert pump.wiring.store.calls.start(
        turn_id=turn_id,
        call_id="c1-0",
        attempt=1,
        session_id=session,
        tool="pay",
        effect=Effect.NETWORK,
        args_hash="",
        args_json=json.dumps(ARGUMENTS),
        idempotency_key="key-of-this-payment",
        owner="dead",
    )
    assert pump.wiring.state.calls.start(claimed) == "OK"


def die_in_the_payment(pump: Pump, session: str) -> TurnHandle:
    """Let a worker die in the payment of a turn, and the turn go on."""
    handle = pump.submit(session, "Pay ann.")
    pump.drain("brainq.turns")
    claim_the_payment(pump, handle)

    def is_unknown() -> bool:
        pump.sweep()
        (call,) = handle.calls()
        return call.status == "unknown"

    wait_until(is_unknown, "the sweeper found the dead worker")
    return handle


def test_turns_with_an_unknown_write_are_listed_until_its_outcome_is_known(brainq: Brainq, pump: Pump) -> None:
    pump.finish(pump.submit("s0", "Pay ann."))
    handle = die_in_the_payment(pump, "s1")
    running = pump.submit("s2", "Pay ann.")
    pump.drain("brainq.turns")
    claim_the_payment(pump, running)
    live = json.loads(brainq("list", "--unknown", "--json").out)
    assert [(turn["turn_id"], turn["unknown_calls"]) for turn in live] == [(handle.turn_id, 1)]
    pump.finish(handle)
    (over,) = json.loads(brainq("list", "--unknown", "--session", "s1", "--json").out)
    assert (over["turn_id"], over["unknown_calls"], over["failed_calls"]) == (handle.turn_id, 1, 1)
    assert [turn.turn_id for turn in pump.client.turns("s1", unknown=True, sort="oldest")] == [handle.turn_id]
    assert "unknown" in brainq("list").out.splitlines()[0]  # the column
    pump.wiring.store.calls.record_outcome(handle.turn_id, "c1-0", 1, ToolSuccess(value="ok", latency_ms=7), late=True)
    assert json.loads(brainq("list", "--unknown", "--session", "s1", "--json").out) == []
    assert "success, late" in brainq("show", f"{handle.turn_id}-c1-0").out


@pytest.mark.parametrize("is_over", [False, True])
def test_an_unknown_call_is_shown_with_arguments_start_and_key(brainq: Brainq, pump: Pump, is_over: bool) -> None:
    handle = die_in_the_payment(pump, "s1")
    if is_over:
        pump.finish(handle)
    page = brainq("show", f"{handle.turn_id}-c1-0").out
    assert '"to": "ann"' in page
    assert "key       key-of-this-payment" in page
    assert f"started   {datetime.now(UTC):%Y-%m-%d}" in page
    assert "took" not in page
    found = json.loads(brainq("show", f"{handle.turn_id}-c1-0", "--json").out)
    assert (found["arguments"], found["status"], len(found["intents"])) == (ARGUMENTS, "unknown", 1)


def test_a_call_that_redis_lost_is_shown_from_its_intent(brainq: Brainq, pump: Pump) -> None:
    handle = die_in_the_payment(pump, "s1")
    pump.wiring.state.redis.flushall()
    shown = brainq("show", f"{handle.turn_id}-c1-0")
    assert shown.code == ExitCode.OK
    assert "unknown  Redis lost the trace of this call; these are the data in SQL" in shown.out
    assert '"amount": 12' in shown.out
    assert "has no call c1-1" in brainq("show", f"{handle.turn_id}-c1-1").err


def test_a_list_ends_at_an_instant(brainq: Brainq, pump: Pump) -> None:
    handle = pump.submit("s1", "Pay ann.")
    now = datetime.now(UTC)

    def listed(*options: str) -> list[str]:
        return [turn["turn_id"] for turn in json.loads(brainq("list", "--json", *options).out)]

    assert listed("--since", f"{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}") == [handle.turn_id]
    assert listed("--until", f"{now + timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}") == [handle.turn_id]
    assert listed("--until", f"{now - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}") == []
    assert listed("--until", "5m") == []
    wrong = brainq("list", "--until", "soon")
    assert (wrong.code, "--until: 'soon' is not a time; write a span" in wrong.err) == (ExitCode.USAGE, True)
