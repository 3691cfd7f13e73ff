"""A turn is read after everything that happens to it: what was read before stands for good, in Redis and in SQL."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from brainq import Brain, Effect, Limits, Message, TurnCall, TurnEvent
from brainq.client.connection import wiring_of
from brainq.client.handle import TurnHandle
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, ScriptedProvider, calls, fails, says
from tests.support.pump import Pump

Pumps = Callable[..., Pump]
Act = Callable[[Pump, TurnHandle, int], object]
LONG = "dust " * 200


class Reader:
    """Reads a turn again and again, whole and page by page."""

    def __init__(self, handle: TurnHandle) -> None:
        self.handle = handle
        self.said: tuple[Message, ...] = ()
        self.calls: tuple[TurnCall, ...] = ()

    def read(self) -> None:
        said, done = self.handle.transcript(), self.handle.calls()
        assert said[: len(self.said)] == self.said
        assert tuple(self.messages(3)) == said
        assert tuple(self.rows(2)) == done
        assert [call.id for call in done[: len(self.calls)]] == [call.id for call in self.calls]
        for before, now in zip(self.calls, done, strict=False):
            assert now == before or not before.status.is_settled
        self.said, self.calls = said, done

    def messages(self, limit: int) -> Iterator[Message]:
        after = 0
        while page := self.handle.transcript(limit=limit, after=after):
            assert len(page) <= limit
            yield from page
            after += len(page)

    def rows(self, limit: int) -> Iterator[TurnCall]:
        after = None
        while page := self.handle.calls(limit=limit, after=after):
            assert len(page) <= limit
            yield from page
            after = page[-1].id


def shop(model: ScriptedProvider, **options: Any) -> Brain:
    brain = Brain("shop", model, **options)

    @brain.tool(effect=Effect.READ_ONLY)
    def look(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at a shelf; there is none below 0."""
        if shelf < 0:
            raise LookupError("no such shelf")
        return f"shelf {shelf}: {LONG}"

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def put(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Put something there."""
        return f"put on {shelf}"

    @brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
    def sell(shelf: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Sell what is there."""
        return f"sold {shelf}"

    return brain


def script(*replies: ModelReply | ScriptedFailure) -> ScriptedProvider:
    def rules(request: ModelRequest) -> ModelReply | ScriptedFailure:
        return replies[min(request.step, len(replies)) - 1]

    return ScriptedProvider(rules=rules, auxiliary=lambda _: says("Look elsewhere."))


WALK = tuple(calls(("look", {"shelf": n})) for n in range(12))
WAVES = calls(("look", {"shelf": 1}), ("look", {"shelf": 2}), ("put", {"shelf": 3}), ("look", {"shelf": 4}), text="So:")
SELLS = calls(("look", {"shelf": 1}), ("sell", {"shelf": 2}), ("sell", {"shelf": 3}))
MANY = calls(*(("look", {"shelf": n}) for n in range(20)))
ENDING = {"note": "ending"}
SMALL = Limits(max_steps=20, max_tool_calls=20, max_context_tokens=2_500)


@dataclass(frozen=True)
class Case:
    """A turn, what it is submitted with, and what is done to it after each doorbell."""

    brain: Callable[[], Brain]
    submit: dict[str, Any]
    act: Act
    ends: str
    roles: str
    """The first letters of its messages' roles; of a compacted turn those that it begins with."""
    follows: bool = False
    """Another turn of its session was before it."""


def nothing(_: Pump, __: TurnHandle, ___: int) -> None: ...


def steer(_: Pump, handle: TurnHandle, bells: int) -> None:
    if bells in (1, 3):
        for text in ("z", "a"):  # in this order, whatever sorts first
            handle.steer(text)


def approve_and_deny(pump: Pump, handle: TurnHandle, _: int) -> None:
    for approval in handle.approvals():
        if approval.state == "pending" and approval.call_id == "c1-1":
            pump.client.edit(approval.id, {"shelf": 7}, by="ann")
        elif approval.state == "pending":
            pump.client.deny(approval.id, "no")


def cancel_when_parked(_: Pump, handle: TurnHandle, __: int) -> None:
    snapshot = handle.snapshot()
    if snapshot is not None and snapshot.state == "parked":
        handle.cancel("enough")


CASES = {
    "waves": Case(lambda: shop(script(WAVES, says("Done."))), {}, nothing, "completed", "uatttta"),
    "steered": Case(lambda: shop(script(WALK[1], WALK[2], says("Done."))), {}, steer, "completed", "uatuuatuua"),
    "cut reply": Case(
        lambda: shop(script(calls(("look", {"shelf": 1}), finish="length"), says("Done."))),
        {},
        nothing,
        "completed",
        "uata",
    ),
    "answer asked for again": Case(
        lambda: shop(script(says("no JSON"), says('{"a": 1}'))),
        {"output_schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}},
        nothing,
        "completed",
        "uaua",
    ),
    "failed call": Case(
        lambda: shop(script(calls(("look", {"shelf": -1}), ("nobody", {})), says("Done.")), thinking="low"),
        {},
        nothing,
        "completed",
        "uattua",
    ),
    "limit": Case(lambda: shop(script(*WALK)), {"limits": {"max_steps": 2}}, nothing, "completed", "uatata"),
    "parked and decided": Case(lambda: shop(script(SELLS, says("Done."))), {}, approve_and_deny, "completed", "uattta"),
    "cancelled while parked": Case(
        lambda: shop(script(SELLS, says("Done."))), {}, cancel_when_parked, "cancelled", "uatttu"
    ),
    "failed while it thought": Case(
        lambda: shop(script(WALK[1], fails(retryable=False))), {}, steer, "failed", "uatuuu"
    ),
    "compacted": Case(
        lambda: shop(script(*WALK, says("Done.")), limits=SMALL), {}, steer, "completed", "uuuatuuatatatat", True
    ),
    "shortened": Case(
        lambda: shop(script(MANY, says("Done.")), limits=SMALL), {}, nothing, "completed", "ua" + "t" * 20 + "a"
    ),
    "review": Case(
        lambda: shop(script(WALK[1], says("Fine."))), {"kind": "review"}, nothing, "completed", "uata", True
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_what_was_read_of_a_turn_stands_for_good(pumps: Pumps, case: Case) -> None:
    pump = pumps(case.brain())
    if case.follows:
        pump.finish(pump.submit("s1", "Before"))
    handle = pump.submit("s1", "Where is the lamp?", **case.submit)
    reader, bells = Reader(handle), 0
    reader.read()
    while True:
        bell = pump.take()
        if bell is None:
            snapshot = handle.snapshot()
            if snapshot is not None and snapshot.awaits == "nobody":
                break
            pump.sweep()
        else:
            pump.answer(bell)
            bells += 1
        reader.read()
        case.act(pump, handle, bells)
    reader.read()
    assert handle.result(timeout_s=1).ending == case.ends
    roles = "".join(message.role[0] for message in reader.said)
    assert roles[: len(case.roles)] == case.roles
    assert [message.extra for message in reader.said[-1:]] == [None if case.ends == "completed" else ENDING]
    is_compacted = any(event.kind == "compaction" for event in handle.events())
    assert is_compacted == (case in (CASES["compacted"], CASES["shortened"]))
    assert is_compacted or len(roles) == len(case.roles)
    tools = [message for message in reader.said if message.role == "tool"]
    assert [(call.call_id, call.result) for call in reader.calls] == [
        (message.call_id, message.content) for message in tools
    ]
    assert all(call.is_kept and call.arguments is not None for call in reader.calls)
    pump.wiring.state.redis.flushall()
    reader.read()


def test_a_turn_that_is_not_recorded_yet_outlives_the_next_ones_compaction(pumps: Pumps) -> None:
    pump = pumps(shop(script(*WALK, says("Done.")), limits=SMALL))
    first = pump.submit("s1", "Where is the lamp?")
    engine = ("brainq.turns", "brainq.tools.read_only")
    while pump.drain(*engine):
        pass
    reader = Reader(first)
    reader.read()
    snapshot = first.snapshot()
    assert snapshot is not None
    assert (snapshot.state, reader.said[-1].content) == ("closing", "Done.")
    second = pump.submit("s1", "And the chair?")
    while bell := pump.take(*engine):
        pump.answer(bell)
        reader.read()
    assert any(event.kind == "compaction" for event in events_so_far(second))
    pump.finish(second)
    reader.read()
    pump.wiring.state.redis.flushall()
    reader.read()
    assert reader.said[-1].content == "Done."


def events_so_far(handle: TurnHandle) -> list[TurnEvent]:
    return list(handle.events_so_far())


@pytest.mark.parametrize(("read", "after"), [("messages", 0), ("page", 0), ("page", 4), ("count", 1)])
def test_a_compaction_in_the_middle_of_a_read_hides_nothing(
    pumps: Pumps, monkeypatch: pytest.MonkeyPatch, read: str, after: int
) -> None:
    pump = pumps(shop(script(*WALK, says("Done.")), limits=SMALL))
    tried = pump.submit("s0", "Where is the lamp?")
    bells = 0
    while not any(event.kind == "compaction" for event in events_so_far(tried)):
        answer_next(pump)
        bells += 1
    pump.finish(tried)

    handle = pump.submit("s1", "Where is the lamp?")
    for _ in range(bells - 1):
        answer_next(pump)
    whole = handle.transcript()
    wiring = wiring_of(pump.client)
    reads: Any = wiring.state.transcripts if read == "messages" else wiring.store.transcripts
    asked = getattr(type(reads), read)

    def compacts_first(self: Any, *given: Any) -> Any:
        monkeypatch.setattr(type(reads), read, asked)
        answer_next(pump)
        return asked(self, *given)

    monkeypatch.setattr(type(reads), read, compacts_first)
    found = handle.transcript(after=after)
    assert any(event.kind == "compaction" for event in events_so_far(handle))
    assert found[: len(whole) - after] == whole[after:]
    assert wiring.store.transcripts.count(handle.turn_id) > 0


def answer_next(pump: Pump) -> None:
    bell = pump.take("brainq.turns", "brainq.tools.read_only")
    assert bell is not None
    pump.answer(bell)
