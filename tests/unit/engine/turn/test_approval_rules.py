"""Which calls need an approval."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from brainq.contracts.brain import Approvals
from brainq.contracts.people import ApprovalRequirement
from brainq.contracts.status import Effect
from brainq.engine.brain.brain import DEFAULT_APPROVALS, Brain
from brainq.engine.tools.tool import MAX_REASON_CHARS, ApprovalRule, make_tool
from brainq.engine.turn.call_plan import approval_for

HOUR = 3_600.0


def pay(amount: int) -> None: ...


def ask(
    approval: ApprovalRule,
    arguments: dict[str, Any] | None = None,
    *,
    effect: Effect = Effect.NETWORK,
    approvals: Approvals = DEFAULT_APPROVALS,
) -> ApprovalRequirement | None:
    tool = make_tool(pay, effect=effect, approval=approval)
    return approval_for(Brain("b", "openai:x", approvals=approvals), tool, arguments or {"amount": 5})


def over(limit: int) -> Callable[[dict[str, Any]], bool | str]:
    return lambda arguments: arguments["amount"] > limit and f"more than {limit}"


def test_most_calls_need_none() -> None:
    assert ask(None) is None
    assert ask(False) is None


def test_a_tool_that_always_needs_one_says_why() -> None:
    assert ask(True) == ApprovalRequirement(reason="every call of this tool needs an approval", timeout_s=HOUR)
    assert ask("it moves money") == ApprovalRequirement(reason="it moves money", timeout_s=HOUR)


def test_a_function_decides_by_the_arguments() -> None:
    assert ask(over(9)) is None
    assert ask(over(3)) == ApprovalRequirement(reason="more than 3", timeout_s=HOUR)
    assert ask(lambda arguments: True) == ApprovalRequirement(
        reason="the tool asks for an approval of this call", timeout_s=HOUR
    )


@pytest.mark.parametrize("nothing", [False, None, "", 0, []])
def test_a_falsy_answer_needs_none(nothing: Any) -> None:
    assert ask(lambda arguments: nothing) is None


def test_an_async_function_decides_too() -> None:
    async def dear(arguments: dict[str, Any]) -> str | None:
        await asyncio.sleep(0)
        return "dear" if arguments["amount"] > 3 else None

    assert ask(dear) == ApprovalRequirement(reason="dear", timeout_s=HOUR)
    assert ask(dear, {"amount": 3}) is None


@pytest.mark.parametrize("something", [" \n ", 1, [""]])
def test_an_answer_without_a_reason_is_given_one(something: Any) -> None:
    asked = ask(lambda arguments: something)
    assert asked is not None
    assert asked.reason == "the tool asks for an approval of this call"


def test_a_long_reason_is_cut() -> None:
    asked = ask(lambda arguments: "x" * 10_000)
    assert asked is not None
    assert len(asked.reason) == MAX_REASON_CHARS


def test_the_brain_asks_by_effect_beside_what_the_tool_says() -> None:
    brains = Approvals(effects=(Effect.NETWORK,), timeout_s=60)
    by_effect = ApprovalRequirement(reason="calls with the effect network need an approval", timeout_s=60)

    assert ask(None, approvals=brains) == by_effect
    assert ask(over(9), approvals=brains) == by_effect
    assert ask(over(3), approvals=brains) == ApprovalRequirement(reason="more than 3", timeout_s=60)
    assert ask(None, approvals=brains, effect=Effect.LOCAL_WRITE) is None
    assert ask(False, approvals=brains) is None


def raising(arguments: dict[str, Any]) -> bool:
    raise LookupError(f"secret {arguments}")


async def later() -> bool:
    return False


async def failing(arguments: dict[str, Any]) -> bool:
    raise LookupError(f"secret {arguments}")


class Soon:
    def __await__(self) -> Iterator[bool]:
        yield False


class Unsure:
    def __bool__(self) -> bool:
        raise ValueError("neither")


def answering(answer: Callable[[], Any]) -> Callable[[dict[str, Any]], Any]:
    return lambda arguments: answer()


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (raising, "LookupError"),
        (failing, "LookupError"),
        (answering({}.popitem), "KeyError"),
        (answering(later), "TypeError"),
        (answering(Soon), "TypeError"),
        (answering(Unsure), "ValueError"),
    ],
)
def test_a_rule_that_fails_asks_and_is_logged_without_what_it_saw(
    rule: Any, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "brainq.turn")

    assert ask(rule) == ApprovalRequirement(reason=f"the approval rule failed: {why}", timeout_s=HOUR)

    assert "approval rule raised" in caplog.text
    assert "tool=pay" in caplog.text
    assert f"why={why}" in caplog.text
    assert "secret" not in caplog.text


def test_a_rule_cannot_change_what_will_run() -> None:
    def greedy(arguments: dict[str, Any]) -> bool:
        arguments["to"].append("me")
        arguments.clear()
        return True

    arguments: dict[str, Any] = {"amount": 1, "to": ["you"]}

    assert ask(greedy, arguments) is not None
    assert arguments == {"amount": 1, "to": ["you"]}
