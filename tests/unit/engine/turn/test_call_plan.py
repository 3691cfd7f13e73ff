"""From a reply to planned calls: their waves, and which of them must wait for a person."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from brainq.contracts.brain import Approvals
from brainq.contracts.callbacks import PreToolUse
from brainq.contracts.message import ToolCall
from brainq.contracts.model import ModelReply
from brainq.contracts.people import ApprovalRequirement
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import Brain
from brainq.engine.gates.canonical import fingerprint
from brainq.engine.turn.call_plan import (
    MAX_CALLS_A_REPLY,
    CallPlan,
    CallPlanner,
    Schedulable,
    ToolScheduler,
    deny_over_budget,
)
from tests.support.hashes import args_hash
from tests.unit.engine.turn.views import view


def bank(**given: Any) -> Brain:
    brain = Brain("bank", "openai:x", **given)

    @brain.tool(effect=Effect.READ_ONLY)
    def balance() -> int:
        return 1

    @brain.tool(
        effect=Effect.NETWORK, deny_repeats=True, approval=lambda arguments: arguments["amount"] > 100 and "a lot"
    )
    def pay(amount: int, to: str = "you") -> None: ...

    return brain


def plan(brain: Brain, *calls: tuple[str, dict[str, Any] | str], refused: Sequence[str] = ()) -> CallPlan:
    """What becomes of these calls; the budget refuses those of these ids."""
    wanted = tuple(
        ToolCall(id=f"p{index}", name=name, arguments=arguments) for index, (name, arguments) in enumerate(calls)
    )
    reply = ModelReply(calls=wanted)
    planner = CallPlanner(brain, view(), 1, reply)
    return planner.plan(deny_over_budget(planner.judge(), refused))


def test_the_calls_that_need_an_approval_carry_why() -> None:
    made = plan(bank(), ("balance", {}), ("pay", {"amount": 5}), ("pay", {"amount": 500}))

    assert [call.ask for call in made.calls] == [None, None, ApprovalRequirement(reason="a lot", timeout_s=3600.0)]
    assert [call.wave for call in made.calls] == [1, 2, 3]


def test_the_rule_sees_the_arguments_as_they_will_run() -> None:
    def doubled(use: PreToolUse) -> dict[str, Any]:
        return {"amount": "200"}  # mended to a number by the validation gate

    made = plan(bank(callbacks={"on_pre_tool_use": doubled}), ("pay", {"amount": 1}))

    [call] = made.calls
    assert call.ask == ApprovalRequirement(reason="a lot", timeout_s=3600.0)
    assert json.loads(call.arguments_json)["arguments"] == {"amount": 200}


def test_the_brains_own_rule_counts_for_reads_that_it_names_and_for_nothing_denied() -> None:
    brain = bank(approvals=Approvals(effects=(Effect.READ_ONLY, Effect.NETWORK), timeout_s=9))
    made = plan(
        brain,
        ("balance", {}),
        ("pay", {"amount": "x"}),
        ("nope", {}),
        ("pay", {"amount": 1}),
        ("pay", {"amount": 2}),
        refused=["c1-4"],
    )

    assert [call.denied for call in made.calls] == ["", "validation", "validation", "", "budget"]
    assert [call.ask and call.ask.reason for call in made.calls] == [
        "calls with the effect read_only need an approval",
        None,
        None,
        "calls with the effect network need an approval",
        None,
    ]


def test_what_a_worker_reads_of_a_call() -> None:
    [call] = plan(bank(), ("pay", {"to": "me", "amount": 5.0})).calls

    arguments = {"amount": 5, "to": "me"}
    assert json.loads(call.arguments_json) == {
        "arguments": arguments,
        "hash": args_hash(arguments),
        "lanes": ["session:s1"],
        "cwd": "/w",
        "metadata": {"k": 1},
    }
    assert call.fingerprint == fingerprint("pay", arguments)
    assert call.lanes == ("session:s1",)


def test_a_call_without_a_name_gets_one() -> None:
    made = plan(bank(), ("", {}))

    assert [(call.tool, call.denied) for call in made.calls] == [("unnamed", "validation")]
    assert [call.name for call in made.message.calls] == ["unnamed"]


def library(**given: Any) -> Brain:
    brain = Brain("library", "openai:x", **given)

    @brain.tool(effect=Effect.READ_ONLY, resources=("shelf:{shelf}",))
    def look(shelf: int) -> None: ...

    @brain.tool(effect=Effect.READ_ONLY)
    def ask(word: str) -> None: ...

    @brain.tool(effect=Effect.LOCAL_WRITE, resources=("shelf:{shelf}",))
    def tidy(shelf: int) -> None: ...

    return brain


LOOKS: list[tuple[str, dict[str, Any] | str]] = [("look", {"shelf": 1}), ("look", {"shelf": 2}), ("ask", {"word": "a"})]


def waves(made: CallPlan) -> list[int]:
    return [call.wave for call in made.calls]


def test_reads_of_one_reply_go_side_by_side_unless_the_brain_says_one_at_a_time() -> None:
    assert waves(plan(library(), *LOOKS)) == [1, 1, 1]
    assert waves(plan(library(parallel_tools=False), *LOOKS)) == [1, 2, 3]


def test_reads_that_share_a_resource_are_kept_in_separate_waves() -> None:
    again: tuple[str, dict[str, Any] | str] = ("look", {"shelf": 1})
    assert waves(plan(library(), *LOOKS[:2], again, LOOKS[2])) == [1, 1, 2, 2]
    # What a change names keeps nothing apart: it is alone in its wave anyway.
    assert waves(plan(library(), LOOKS[0], ("tidy", {"shelf": 1}), LOOKS[0])) == [1, 2, 3]
    assert [call.lanes for call in plan(library(), LOOKS[0], ("tidy", {"shelf": 1})).calls] == [(), ("shelf:1",)]


def test_calls_that_the_budget_refuses_are_denied_and_the_others_run() -> None:
    found = plan(bank(), ("balance", {}), ("pay", {"amount": 1}), refused=["c1-1"])
    assert [(call.tool, call.denied) for call in found.calls] == [("balance", ""), ("pay", "budget")]


def test_of_a_reply_with_too_many_calls_the_first_run_and_the_model_reads_why_the_others_do_not() -> None:
    asked: list[tuple[str, dict[str, Any] | str]] = [
        ("pay", {"amount": number}) for number in range(MAX_CALLS_A_REPLY + 1)
    ]
    found = plan(bank(), *asked, ("pay", '{"amount": 1'))
    assert len(found.message.calls) == len(found.calls) == MAX_CALLS_A_REPLY + 2
    assert [call.denied for call in found.calls[:MAX_CALLS_A_REPLY]] == [""] * MAX_CALLS_A_REPLY
    for call in found.calls[MAX_CALLS_A_REPLY:]:
        assert call.denied == "too_many"
        assert "at most 128 tool calls, and this one held 130" in call.message_json
    # A service takes back arguments that are an object, and nothing else.
    assert found.message.calls[-1].arguments == {}


READ, WRITE = Schedulable(Effect.READ_ONLY), Schedulable(Effect.LOCAL_WRITE)
OURS = Schedulable(Effect.NETWORK, is_client=True)
SEND, WIPE = Schedulable(Effect.NETWORK), Schedulable(Effect.DESTRUCTIVE)


def read_of(*resources: str) -> Schedulable:
    return Schedulable(Effect.READ_ONLY, frozenset(resources))


@pytest.mark.parametrize(
    ("calls", "waves"),
    [
        ([], []),
        ([WRITE], [1]),
        ([READ, READ, READ], [1, 1, 1]),
        ([WRITE, WRITE], [1, 2]),
        ([WRITE, READ], [1, 2]),
        ([READ, WRITE, READ, READ, SEND, WIPE], [1, 2, 3, 3, 4, 5]),
        ([OURS, OURS, READ, OURS], [1, 1, 1, 1]),
        ([READ, OURS, WRITE, OURS, OURS, SEND], [1, 1, 2, 3, 3, 4]),
        ([read_of("a"), read_of("b"), read_of("a")], [1, 1, 2]),
        ([read_of("a", "b"), read_of("b", "c"), read_of("a")], [1, 2, 2]),
    ],
)
def test_waves(calls: list[Schedulable], waves: list[int]) -> None:
    assert ToolScheduler().waves(calls) == waves


SOME = st.lists(
    st.builds(Schedulable, st.sampled_from(list(Effect)), st.frozensets(st.sampled_from("abc"), max_size=2)),
    max_size=12,
)


@given(SOME)
def test_what_holds_of_all_waves(calls: list[Schedulable]) -> None:
    numbers = ToolScheduler().waves(calls)
    assert numbers == sorted(numbers)
    assert set(numbers) == set(range(1, max(numbers, default=0) + 1))
    members: dict[int, list[Schedulable]] = defaultdict(list)
    for number, call in zip(numbers, calls, strict=True):
        members[number].append(call)
    for wave in members.values():
        assert len(wave) == 1 or all(call.effect.is_read for call in wave)
        keys = [key for call in wave for key in call.resources]
        assert len(keys) == len(set(keys))


@given(SOME)
def test_one_at_a_time_is_one_a_wave(calls: list[Schedulable]) -> None:
    assert ToolScheduler(parallel=False).waves(calls) == list(range(1, len(calls) + 1))


def test_one_at_a_time_is_of_the_brains_own_calls() -> None:
    calls = [READ, OURS, OURS, READ, OURS, WRITE, OURS]
    assert ToolScheduler(parallel=False).waves(calls) == [1, 2, 2, 3, 4, 5, 6]
