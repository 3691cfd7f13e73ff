"""The decision record, wherever it is read; and a store of one's own."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from brainq import AsyncClient, Brain, Effect, InvalidInput, Operator, RuntimeDecisionRecord, ScriptedProvider
from brainq.adapters.sql.database import Transaction
from brainq.adapters.sql.prune import prune
from brainq.cli.pages.turn import print_turn
from brainq.contracts.claim import FinalStepClaim
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.contracts.turn import TurnResult
from brainq.engine.finalize.steps import StepContext
from brainq.engine.models.scripted import calls, says
from tests.support.pump import Pump


def obey(request: ModelRequest) -> ModelReply:
    said = request.messages[-1].content
    return calls((said, {})) if said == "look" and request.step == 1 else says("Done.")


def looker(**more: Any) -> Brain:
    brain = Brain("looker", ScriptedProvider(rules=obey), "Look.", **more)

    @brain.tool(effect=Effect.READ_ONLY)
    def look() -> str:
        "Look."
        return "seen"

    return brain


class Shelf:
    """A store that refuses the first `times`."""

    def __init__(self, times: int = 0) -> None:
        self.left = times
        self.kept: dict[str, RuntimeDecisionRecord] = {}
        self.keys: list[str] = []

    def write(self, record: RuntimeDecisionRecord, step_key: str) -> None:
        self.keys.append(step_key)
        if self.left:
            self.left -= 1
            raise OSError("the shelf is full")
        self.kept[record.turn_id] = record

    def get(self, turn_id: str) -> RuntimeDecisionRecord | None:
        return self.kept.get(turn_id)


def test_tools_are_in_the_models_order_whatever_order_redis_keeps(pumps: Callable[..., Pump]) -> None:
    asked = ("find", "weigh", "count", "sort", "add", "look", "read", "list")

    def all_of_them(request: ModelRequest) -> ModelReply:
        # A text of more than 64 bytes: Redis keeps a hash of such values in an order of its own.
        return calls(*((name, {"text": "x" * 100}) for name in asked)) if request.step == 1 else says("Done.")

    brain = Brain("looker", ScriptedProvider(rules=all_of_them))

    def work(text: str) -> str:
        "Work."
        return text

    for name in asked:
        brain.tool(name=name, effect=Effect.READ_ONLY)(work)
    pump = pumps(brain)
    handle = pump.submit("s1", "Do all.")
    pump.settle(handle)
    record = handle.decision()
    assert record is not None
    assert record.tools == asked


def test_it_is_read_by_clients_and_operators_and_lists_know_its_strategy(pumps: Callable[..., Pump]) -> None:
    pump = pumps(looker())
    used, plain = pump.submit("s1", "look"), pump.submit("s1", "say")
    assert used.decision() is None
    pump.settle(used)
    pump.settle(plain)
    record = used.decision()
    assert record is not None
    assert (record.key, record.strategy, record.tools) == ("support.chat.turn", "tool_assisted", ("look",))
    assert (record.turn_id, record.turn_number, len(record.prompt_hash)) == (used.turn_id, 1, 16)
    assert record.usage.total == used.result(timeout_s=1).input_tokens + used.result(timeout_s=1).output_tokens

    async def read() -> RuntimeDecisionRecord | None:
        async with AsyncClient(pump.settings, pump.wiring.brains) as client:
            return await (await client.handle(used.turn_id)).decision()

    assert asyncio.run(read()) == record
    facts = Operator(pump.settings).facts(used.turn_id)
    assert facts.decision == record
    assert facts.as_json()["decision"]["strategy"] == "tool_assisted"

    pump.submit("s2", "say")  # it has not ended: nobody knows its strategy
    for strategy, turns in (("tool_assisted", [used]), ("direct_answer", [plain]), ("web_augmented", [])):
        found = [turn.turn_id for turn in pump.client.turns(strategy=strategy)]
        assert found == [turn.turn_id for turn in turns]
    assert not pump.client.turns(strategy="direct_answer", session="s2")
    assert not pump.client.turns(strategy="direct_answer", state="rejected")
    with pytest.raises(InvalidInput, match="strategy"):
        pump.client.turns(strategy="guessed")


def test_a_store_of_ones_own_has_them_in_place_of_sql(pumps: Callable[..., Pump]) -> None:
    shelf = Shelf(times=1)
    pump = pumps(looker(decisions=shelf))
    handle = pump.submit("s1", "look")
    pump.settle(handle)
    record = handle.decision()
    assert record is not None
    assert record == shelf.kept[handle.turn_id]
    assert record.strategy == "tool_assisted"
    assert shelf.keys == [f"{handle.turn_id}:decision"] * 2
    assert pump.wiring.store.decisions.get(handle.turn_id) is None
    assert Operator(pump.settings, pump.wiring.brains).facts(handle.turn_id).decision == record
    rows = {row.step: (row.state, row.tries) for row in pump.wiring.store.steps.of_turn(handle.turn_id)}
    assert rows["decision"] == ("done", 2)


def test_a_turn_whose_record_is_elsewhere_may_be_pruned(pumps: Callable[..., Pump]) -> None:
    pump = pumps(looker(decisions=Shelf()))
    handle, newest = pump.submit("s1", "say"), pump.submit("s1", "say")
    pump.settle(handle)
    pump.settle(newest)
    assert prune(pump.wiring.store, 0.0)["turns"] >= 1


def test_show_prints_it(pumps: Callable[..., Pump]) -> None:
    pump = pumps(looker())
    handle = pump.submit("s1", "look", prompt_tags=["a", "b"])
    pump.settle(handle)
    printed = io.StringIO()
    print_turn(Console(file=printed, width=100), Operator(pump.settings).facts(handle.turn_id))
    section = printed.getvalue().partition("decision\n")[2]
    assert "tool_assisted" in section
    assert "support.chat.turn" in section


def test_what_is_no_store_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`write` and `get`"):
        looker(decisions=object())


class Quiet:
    """A step after the decision's."""

    name = "quiet"

    def is_configured(self, brain: Brain) -> bool:
        return True

    def run(self, context: StepContext) -> None:
        return


class Refusing:
    """Writes decisions, except the first `times`, which fail. `answered`: whether the answer was committed then."""

    def __init__(self, pump: Pump, times: int) -> None:
        self.store, self.left = pump.wiring.store, times
        self.write_row = self.store.decisions.write
        self.answered: list[bool] = []

    def write(self, connection: Transaction, record: RuntimeDecisionRecord) -> bool:
        row = self.store.turns.result(record.turn_id)
        self.answered.append(row is not None)
        if self.left:
            self.left -= 1
            raise OSError("the disk is full")
        return self.write_row(connection, record)


def test_it_is_written_in_one_transaction_with_the_answer(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch
) -> None:
    pump = pumps(looker(final_steps=[Quiet()]))
    refusing = Refusing(pump, times=0)
    monkeypatch.setattr(refusing.store.decisions, "write", refusing.write)
    chain, claimed = pump.wiring.finalizer.chain, list[str]()
    send = chain.send

    def note(claim: FinalStepClaim, next_step: str, result: TurnResult, *, stay: bool) -> Any:
        claimed.append(next_step)
        return send(claim, next_step, result, stay=stay)

    monkeypatch.setattr(chain, "send", note)
    handle = pump.submit("s1", "look")
    pump.settle(handle)
    assert handle.decision() is not None
    assert refusing.answered == [False]
    rows = {row.step: (row.state, row.step_key) for row in refusing.store.steps.of_turn(handle.turn_id)}
    assert rows["decision"] == ("done", f"{handle.turn_id}:decision")
    assert claimed == ["quiet"]


@pytest.mark.parametrize("times", [1, 2])
def test_a_decision_that_sql_refuses_delays_no_result(
    pumps: Callable[..., Pump], monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    pump = pumps(looker())
    refusing = Refusing(pump, times)
    monkeypatch.setattr(refusing.store.decisions, "write", refusing.write)
    handle = pump.submit("s1", "look")
    pump.settle(handle)
    assert handle.result(timeout_s=1).warnings == ()
    assert handle.decision() is not None
    assert refusing.answered == [False, *[True] * times]
    rows = {row.step: (row.state, row.tries) for row in refusing.store.steps.of_turn(handle.turn_id)}
    assert rows["decision"] == ("done", times)
