"""The desk of a shop: what a user of brainq writes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from brainq import Approvals, Brain, Effect, Limits, OutcomeUnknown, Pending, RunContext, ToolError
from brainq.contracts.callbacks import TurnEnd


@dataclass
class Shop:
    """The shop's own service."""

    orders: dict[str, float] = field(default_factory=lambda: {"A1": 120.0, "B2": 15.0})
    paid: list[tuple[str, float]] = field(default_factory=list)
    mails: dict[str, str] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)
    is_down: bool = False

    def price(self, order: str) -> float:
        if self.is_down:
            raise ToolError("the shop is down", retryable=True)
        if order not in self.orders:
            raise ToolError(f"there is no order {order}; ask for its number again")
        return self.orders[order]


shop = Shop()
brain = Brain(
    "desk",
    "openai:gpt-5",
    "You are the desk of a shop. Look at an order before you refund it.",
    limits=Limits(timeout_s=60.0, max_steps=6),
    approvals=Approvals(timeout_s=3600.0),
)


@brain.tool(effect=Effect.READ_ONLY)
def find(order: str) -> str:
    """What an order cost."""
    return f"order {order} cost {shop.price(order):g}"


@brain.tool(effect=Effect.READ_ONLY, timeout_s=5.0)
async def rate(currency: str) -> float:
    """The rate of a currency to the dollar."""
    await asyncio.sleep(0)
    rates = {"EUR": 1.1, "GBP": 1.3}
    if currency not in rates:
        raise ToolError(f"no rate of {currency}")
    return rates[currency]


@brain.tool(effect=Effect.NETWORK, approval=lambda arguments: arguments["amount"] > 100 and "a large refund")
def refund(order: str, amount: float) -> str:
    """Pay money back to the customer."""
    if amount > shop.price(order):
        raise ToolError(f"order {order} cost only {shop.price(order):g}")
    shop.paid.append((order, amount))
    return f"{amount:g} paid back for {order}"


@brain.tool(effect=Effect.NETWORK, idempotent=True)
def mail(context: RunContext, text: str) -> str:
    """Write to the customer."""
    shop.mails[context.idempotency_key] = text  # the same key is the same letter
    context.cite_web(f"https://mail.example/{context.session_id}", "the letter")
    return "sent"


@brain.tool(effect=Effect.NETWORK)
def ask_supplier(context: RunContext, question: str) -> Pending:
    """Ask the supplier, who answers within a day."""
    return Pending(context.outside_token(), timeout_s=86_400.0)


@brain.tool(effect=Effect.DESTRUCTIVE, approval=True)
def cancel_order(order: str) -> str:
    """Cancel an order for good."""
    shop.price(order)
    if order == "B2":
        raise OutcomeUnknown("the warehouse did not answer")
    del shop.orders[order]
    return f"order {order} is cancelled"


@brain.on_turn_end
def note_end(turn: TurnEnd) -> None:
    shop.ended.append(turn.turn_id)
