"""Two that come at once, over real Redis and SQL: exactly one of them wins, and everybody is told the same."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from brainq import Brain
from brainq.client.handle import TurnHandle
from brainq.contracts.claim import CallRef
from brainq.contracts.event import EventKind
from brainq.contracts.ids import full_call_id
from brainq.contracts.people import Approval
from brainq.contracts.status import Ending, TraceStatus
from brainq.engine.people.bounced_inputs import bounced_turn_id
from brainq.errors import ApprovalDecided
from tests.support.brains.racing import AnswersAtTheLine, Approved, EndsAtTheLine, Waiting
from tests.support.races import Arena, Duel, Line
from tests.support.wait import wait_until

CALL, THEN = "c1-0", "c1-1"
SHORT_S = 0.05  # how long people and others are waited for, where the race is against that
ROUNDS = pytest.mark.parametrize("rounds", [20, pytest.param(1000, marks=pytest.mark.full)])
MakeArena = Callable[..., Arena]


@pytest.fixture
def arena_of(redis_url: str, tmp_path: Path) -> Iterator[MakeArena]:
    with ExitStack() as stack:

        def make(brain: Brain, **settings: Any) -> Arena:
            made = Arena(brain, redis_url, tmp_path, **settings)
            stack.callback(made.close)
            return made

        yield make


def tell(request: pytest.FixtureRequest, duel: Duel, rounds: int, began: float) -> None:
    """Print the score, and fail in full size if the race did not happen."""
    took_s = time.monotonic() - began
    print(f"\n{request.node.name}: {dict(duel.wins)} in {took_s:.1f} s")
    assert duel.wins.total() == rounds
    if rounds >= 1000:
        assert len(duel.wins) == 2, f"one side always won: {duel.wins}"


def reply_of(decide: Callable[[], Approval]) -> str:
    """`approved` or `denied` by this decision, or `not: ` and how it stands."""
    try:
        return decide().state
    except ApprovalDecided as told:
        return f"not: {told.state}"


def check_decided(arena: Arena, made: Approved, handle: TurnHandle, stands: str, by: str) -> None:
    """The call has run once if it was approved, and else never; all tell the same."""
    left = arena.finish(handle)
    assert left.ending is Ending.COMPLETED
    (event,) = left.told(EventKind.APPROVAL_DECIDED)
    assert event.data["decision"] == stands
    row = arena.pump.wiring.store.approvals.get(handle.turn_id, CALL)
    assert row is not None
    assert (row.state, row.decided_by) == (stands, by)
    (*intents, last) = arena.pump.wiring.store.calls.of_turn(handle.turn_id)
    text, then = left.tool_texts
    assert (then, left.trace.pop(THEN), last.state) == ("noted", TraceStatus.COMPLETED, "done")
    if stands == "approved":
        assert left.trace == {CALL: TraceStatus.COMPLETED}
        assert [(row.state, row.outcome_kind) for row in intents] == [("done", "success")]
        assert (made.ran[handle.turn_id], text) == (1, "wrote x")
    else:
        assert left.trace == {CALL: TraceStatus.DENIED}
        assert (made.ran[handle.turn_id], intents) == (0, [])
        assert "Not run" in text


@ROUNDS
def test_approve_against_deny(arena_of: MakeArena, rounds: int, request: pytest.FixtureRequest) -> None:
    made, duel, began = Approved(timeout_s=60.0), Duel(), time.monotonic()
    arena = arena_of(made.brain)
    for number in range(rounds):
        handle = arena.until_parked(f"s{number}")
        asked = full_call_id(handle.turn_id, CALL)

        def approve(line: Line, asked: str = asked) -> str:
            line()
            return reply_of(lambda: arena.left.client.approve(asked, by="left"))

        def deny(line: Line, asked: str = asked) -> str:
            line()
            return reply_of(lambda: arena.right.client.deny(asked, "no", by="right"))

        replies = duel.run(approve, deny)
        assert replies in (("approved", "not: approved"), ("not: denied", "denied"))
        is_left = replies[0] == "approved"
        check_decided(arena, made, handle, *(("approved", "left") if is_left else ("denied", "right")))
        duel.won("approve" if is_left else "deny", left=is_left)
    tell(request, duel, rounds, began)


def wait_for_redis(arena: Arena, ends_ms: int, early_s: float = 0.0) -> None:
    """Wait until Redis' clock says `ends_ms`."""
    client: Any = arena.pump.wiring.state.redis
    seconds, micros = client.time()
    threading.Event().wait(max(0.0, ends_ms / 1000 - seconds - micros / 1e6 - early_s))


def park_ends_ms(arena: Arena, handle: TurnHandle) -> int:
    client: Any = arena.pump.wiring.state.redis
    key = arena.pump.wiring.state.keys.named("trace", handle.session_id, handle.turn_id)
    return int(client.hget(key, f"{CALL}:park_ends"))


def expire(arena: Arena, handle: TurnHandle) -> str:
    """What a sweeper does when the time is up, until the call waits no more."""

    def once() -> str:
        word = arena.right.wiring.sweeper.checks.expire_parks(handle.session_id, handle.turn_id)
        facts = arena.right.wiring.state.calls.facts(CallRef(handle.session_id, handle.turn_id, CALL))
        return word if word != "none" or facts is None or facts.status is not TraceStatus.PARKED else ""

    return wait_until(once, "the call waits no more", every_s=0.0002)


@ROUNDS
def test_approve_against_expiry(arena_of: MakeArena, rounds: int, request: pytest.FixtureRequest) -> None:
    made, duel, began = Approved(timeout_s=SHORT_S), Duel(), time.monotonic()
    arena = arena_of(made.brain)
    for number in range(rounds):
        handle = arena.until_parked(f"s{number}")
        asked, ends_ms = full_call_id(handle.turn_id, CALL), park_ends_ms(arena, handle)

        def approve(line: Line, asked: str = asked, ends_ms: int = ends_ms) -> str:
            wait_for_redis(arena, ends_ms, early_s=0.003)
            line()
            return reply_of(lambda: arena.left.client.approve(asked, by="left"))

        def let_expire(line: Line, handle: TurnHandle = handle, ends_ms: int = ends_ms) -> str:
            wait_for_redis(arena, ends_ms, early_s=0.003)
            line()
            return expire(arena, handle)

        reply, _ = duel.run(approve, let_expire)
        assert reply in ("approved", "not: expired")
        is_left = reply == "approved"
        check_decided(arena, made, handle, *(("approved", "left") if is_left else ("expired", "")))
        duel.won("approve" if is_left else "expiry", left=is_left)
    tell(request, duel, rounds, began)


@ROUNDS
def test_cancel_against_last_result(arena_of: MakeArena, rounds: int, request: pytest.FixtureRequest) -> None:
    """The turn ends as cancelled, and its call as completed or as unknown: never as both, or as neither."""
    made, duel, began = EndsAtTheLine(), Duel(), time.monotonic()
    arena = arena_of(made.brain, cancel_grace_s=0.001)
    for number in range(rounds):
        handle = arena.pump.submit(f"s{number}", "Go.")
        arena.pump.drain("brainq.turns")
        bell = arena.pump.take("brainq.tools.local_write")
        assert bell is not None

        def cancel(line: Line, handle: TurnHandle = handle) -> str:
            line()
            word = arena.left.client.cancel(handle.session_id, handle.turn_id, "enough")
            arena.left.sweep()  # its grace is over: whoever sweeps ends it, unless the call has
            return word

        def end(line: Line, handle: TurnHandle = handle, bell: Any = bell) -> str:
            made.lines[handle.turn_id] = line
            return arena.right.answer(bell)

        word, did = duel.run(cancel, end)
        assert word == "requested"
        left = arena.finish(handle)
        assert left.ending is Ending.CANCELLED
        assert len(left.told(EventKind.TURN_CANCELLING)) == 1
        (status,), (text,) = left.trace.values(), left.tool_texts
        (intent,) = arena.pump.wiring.store.calls.of_turn(handle.turn_id)
        assert (intent.state, intent.outcome_kind) == ("done", "success")
        is_left = status is TraceStatus.UNKNOWN
        if is_left:
            # What it did after all is told to the session's next turn.
            # Its worker may have heard of the cancel, too, and settled it as cut off before anybody swept.
            assert did in ("late", "settled")
            assert re.fullmatch(r"Cancelled after \d\.\d s\. Whether it took effect is not known\.", text)
            assert len(arena.notices(handle.session_id)) == 1
        else:
            assert (status, did, text) == (TraceStatus.COMPLETED, "settled", "wrote x")
            assert arena.notices(handle.session_id) == []
        duel.won("cancel" if is_left else "result", left=is_left)
    tell(request, duel, rounds, began)


@ROUNDS
def test_steer_against_final_text(arena_of: MakeArena, rounds: int, request: pytest.FixtureRequest) -> None:
    """The input is read by one more step of the turn, or becomes the session's next turn."""
    made, duel, began = AnswersAtTheLine(), Duel(), time.monotonic()
    arena = arena_of(made.brain)
    for number in range(rounds):
        sid, text = f"s{number}", f"also {number}"
        handle = arena.pump.submit(sid, "Go.")

        def steer(line: Line, handle: TurnHandle = handle, text: str = text) -> str:
            line()
            there = arena.left.client.handle(handle.turn_id)
            return there.steer(text, client_message_id="m").state

        def answer(line: Line, handle: TurnHandle = handle) -> str:
            made.lines[handle.turn_id] = line
            bell = arena.right.take("brainq.turns")
            assert bell is not None
            return arena.right.answer(bell)

        said, did = duel.run(steer, answer)
        left = arena.finish(handle)
        receipt = handle.receipt("m")
        row = arena.pump.wiring.store.inputs.get(sid, "m")
        assert row is not None
        assert (row.state, row.step, row.bounced_turn_id) == (receipt.state, receipt.step, receipt.bounced_turn_id)
        then = bounced_turn_id(sid, "m")
        is_left = receipt.state == "consumed"
        if is_left:
            assert (said, receipt.step, did) == ("accepted", 2, "answered, and goes on with new input")
            assert arena.pump.wiring.store.turns.get(then) is None
            reader = (handle.turn_id, 2)
        else:
            assert (receipt.state, receipt.bounced_turn_id) == ("bounced", then)
            assert arena.finish(arena.pump.client.handle(then)).ending is Ending.COMPLETED
            reader = (then, 1)
        assert left.ending is Ending.COMPLETED
        fates = {EventKind.INPUT_CONSUMED: int(is_left), EventKind.INPUT_BOUNCED: 0}
        assert {kind: len(left.told(kind)) for kind in fates} == fates
        read = [at for at, shown in made.shown.items() if any(text in m for m in shown)]
        assert read == [reader]
        assert [m.content for m in arena.history(sid)].count(text) == 1
        made.shown.clear()
        duel.won("steer" if is_left else "answer", left=is_left)
    tell(request, duel, rounds, began)


@ROUNDS
def test_complete_against_timeout(arena_of: MakeArena, rounds: int, request: pytest.FixtureRequest) -> None:
    made, duel, began = Waiting(timeout_s=SHORT_S), Duel(), time.monotonic()
    arena = arena_of(made.brain)
    store = arena.pump.wiring.store
    for number in range(rounds):
        handle = arena.until_parked(f"s{number}")
        token, ends_ms = made.tokens[handle.turn_id], park_ends_ms(arena, handle)

        def complete(line: Line, token: str = token, ends_ms: int = ends_ms) -> str:
            wait_for_redis(arena, ends_ms)
            line()
            return arena.left.client.complete_call(token, "sent")

        def let_expire(line: Line, handle: TurnHandle = handle, ends_ms: int = ends_ms) -> str:
            wait_for_redis(arena, ends_ms)
            line()
            return expire(arena, handle)

        said, did = duel.run(complete, let_expire)
        left = arena.finish(handle)
        assert left.ending is Ending.COMPLETED
        status, text, (intent, last) = left.trace[CALL], left.tool_texts[0], store.calls.of_turn(handle.turn_id)
        assert (left.tool_texts[1:], left.trace[THEN], last.state) == (["noted"], TraceStatus.COMPLETED, "done")
        assert (intent.state, intent.outcome_kind) == ("done", "success")
        is_left = said == "settled"
        if is_left:
            assert (status, did, text, intent.late) == (TraceStatus.COMPLETED, "none", "sent", False)
        else:
            assert (said, status, did, intent.late) == ("late", TraceStatus.TIMED_OUT_LATE, "expired", True)
            assert text.startswith("No result came from outside")
        duel.won("complete" if is_left else "timeout", left=is_left)
    tell(request, duel, rounds, began)
