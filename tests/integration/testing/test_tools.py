"""`testing.context` and `testing.call`: tools alone, and through the gates."""

from __future__ import annotations

import pytest

from brainq import Brain, Effect, RunContext, testing
from brainq.errors import InvalidInput

brain = Brain("desk", "openai:gpt-5")


@brain.tool(effect=Effect.READ_ONLY)
def look(context: RunContext, page: int) -> str:
    """Look at a page."""
    context.cite_local(f"page {page}.md")
    return f"page {page} of {(context.metadata or {}).get('book')}, {context.token.is_cancelled}"


@brain.tool(effect=Effect.NETWORK, approval=lambda arguments: arguments["amount"] > 100 and "a large sum")
def pay(amount: float) -> str:
    """Pay."""
    return f"paid {amount:g}"


def test_a_function_with_its_context() -> None:
    context = testing.context(metadata={"book": "Ulysses"})
    context.token.cancel("enough")
    assert look(context, 3) == "page 3 of Ulysses, True"
    assert len(context.outputs().local_citations) == 1
    assert not testing.context(ready=False).is_ready()


def test_a_call_through_the_gates() -> None:
    call = testing.call(brain, "look", {"page": 3})
    assert (call.status, call.result) == ("completed", "page 3 of None, False")


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        ({"amount": 5}, "completed", "paid 5"),
        ('{"amount": [', "denied", "JSON"),
        ({"amount": "much"}, "denied", "amount"),
        ({"amount": 500}, "completed", "paid 500"),
    ],
)
def test_what_the_gates_say(arguments: object, status: str, said: str) -> None:
    call = testing.call(brain, "pay", arguments)  # pyright: ignore[reportArgumentType]
    assert (call.status, said in str(call.result)) == (status, True)


def test_a_denied_approval() -> None:
    assert testing.call(brain, "pay", {"amount": 500}, approve=False).status == "denied"


def test_a_tool_that_is_not_there() -> None:
    with pytest.raises(InvalidInput, match="no tool 'buy'"):
        testing.call(brain, "buy", {})
