"""`redact_logs`: once a turn is over, SQL has none of its content, whichever way it went."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from brainq import Brain, Callbacks, Effect, ScriptedProvider
from brainq.adapters.sql.store import Store
from brainq.contracts.call import ToolFailure, ToolSuccess
from brainq.contracts.callbacks import PostToolUse, TurnInfo
from brainq.contracts.file import File
from brainq.contracts.status import Ending
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says
from brainq.workers.tasks.register import submit_foreign
from tests.support.pump import Pump

CANARY = "canary4711"
Pumps = Callable[..., Pump]


def sql_text(store: Store, turn_id: str = "") -> str:
    """Every value of every row of every table; of a turn: of the rows that name it."""
    with store.engine.connect() as connection:
        names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type = 'table'").scalars()
        rows = [connection.exec_driver_sql(f'SELECT * FROM "{name}"').all() for name in names.all()]
    return str([row for of_table in rows for row in of_table if turn_id in str(row)])


def brain_of(*replies: Any, redact: bool = True, **more: Any) -> Brain:
    brain = Brain("quiet", ScriptedProvider(list(replies)), redact_logs=redact, **more)

    @brain.tool(effect=Effect.LOCAL_WRITE)
    def keep(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Keep."""
        return f"kept {what}"

    @brain.tool(effect=Effect.NETWORK)
    def post(what: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Post."""
        raise ValueError(f"cannot post {what}")

    return brain


WRITES = calls(("keep", {"what": f"{CANARY} args"}), ("post", {"what": CANARY}))
ENDS = {
    "answered": says(f"the answer is {CANARY}"),
    "failed": fails("server", retryable=False, message=f"{CANARY} is no model of ours"),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
def test_nothing_of_a_turn_is_in_sql(pumps: Pumps, end: Any) -> None:
    outcomes: list[Any] = []

    def after(use: PostToolUse) -> None:
        outcomes.append(use.outcome)

    pump = pumps(brain_of(WRITES, end, callbacks=Callbacks(on_post_tool_use=after)))
    handle = pump.submit("s1", f"Do {CANARY}", metadata={"for": CANARY})
    handle.hold(CANARY).release()
    assert CANARY in sql_text(pump.wiring.store), "a live turn's request is kept: the test can fail"
    result = pump.finish(handle)

    assert {type(outcome) for outcome in outcomes} == {ToolSuccess, ToolFailure}
    assert CANARY in f"{result.text}{result.error}" or isinstance(end, ScriptedFailure)
    rows = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert {(row.tool, row.state, row.outcome_kind) for row in rows} == {
        ("keep", "done", "success"),
        ("post", "done", "failure"),
    }
    assert handle.cancel(CANARY) == "ended"
    assert CANARY not in sql_text(pump.wiring.store)


def test_without_redaction_it_is_there(pumps: Pumps) -> None:
    pump = pumps(brain_of(WRITES, ENDS["answered"], redact=False))
    handle = pump.submit("s1", f"Do {CANARY}")
    pump.finish(handle)
    (kept, _) = pump.wiring.store.calls.of_turn(handle.turn_id)
    assert CANARY in f"{kept.args_json}"
    assert CANARY in f"{kept.outcome_json}"


def test_what_is_said_after_a_turn_is_its_brains_with_its_limits(pumps: Pumps) -> None:
    other = Brain("other", ScriptedProvider([says("I am another.")]))
    pump = pumps([other, brain_of(ENDS["answered"], ENDS["answered"])])
    handle = pump.submit("s1", f"Do {CANARY}", brain="quiet", limits={"max_steps": 3})
    pump.finish(handle)
    receipt = handle.steer(f"And {CANARY}?", attachments=[File(b"pears", name=f"{CANARY}.txt")])
    assert receipt.bounced_turn_id
    later = pump.client.handle(receipt.bounced_turn_id)
    assert CANARY in pump.finish(later).text
    request = pump.wiring.store.turns.request(later.turn_id)
    assert request is not None
    assert (request.brain, request.limits.max_steps) == ("quiet", 3)
    for turn_id in (handle.turn_id, later.turn_id):
        assert CANARY not in sql_text(pump.wiring.store, turn_id)


REFUSED: dict[str, dict[str, Any]] = {
    "a wrong field": {"limits": {"max_steps": CANARY}},
    "a wrong id": {"session_id": f"{CANARY} is no id\n"},
    "an unknown field": {CANARY: CANARY},
    "no id": {"turn_id": ""},
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED.keys())
def test_a_refused_submit_leaves_the_names_of_its_fields(pumps: Pumps, change: dict[str, Any]) -> None:
    pump = pumps(brain_of(ENDS["answered"]))
    fields = {"turn_id": "turn-1", "session_id": "s1", "user_message": CANARY, **change}
    assert submit_foreign(pump.wiring, (), fields) == "rejected"
    (row,) = pump.wiring.store.turns.list()
    assert row.state == "rejected"
    assert "redact_logs" in (row.reject_reason or "")
    kept = sql_text(pump.wiring.store)
    assert "user_message" in kept
    assert CANARY not in kept


@pytest.mark.parametrize("redact", [False, True])
@pytest.mark.parametrize("why", ["cancelled in its queue", "no system prompt"])
def test_a_turn_that_never_began_logs_its_users_message(pumps: Pumps, redact: bool, why: str) -> None:
    def prompt(info: TurnInfo) -> str:
        if why == "no system prompt":
            raise LookupError(CANARY)
        return "Help."

    pump = pumps(brain_of(ENDS["answered"], redact=redact, system_prompt=prompt))
    if why == "no system prompt":
        handle = pump.submit("s1", CANARY)
        assert pump.finish(handle).ending is Ending.FAILED
    else:
        pump.submit("s1", "first")
        handle = pump.submit("s1", CANARY)
        handle.cancel("not now")
        assert pump.finish(handle).ending is Ending.CANCELLED
    with pump.wiring.store.engine.connect() as connection:
        query = f"SELECT content, redacted FROM messages WHERE role = 'user' AND turn_id = '{handle.turn_id}'"
        rows = connection.exec_driver_sql(query).all()
    assert [tuple(row) for row in rows] == [("", 1) if redact else (CANARY, 0)]
    if redact:
        assert CANARY not in sql_text(pump.wiring.store, handle.turn_id)
