"""One file, one command: `python -m examples.first` runs turns in this process, without a key and without a service.

`offline:rules` is not a language model: it calls the tools that a message names.
"""

from __future__ import annotations

import brainq
from brainq import Brain, Effect

brain = Brain("desk", "offline:rules")


@brain.tool(effect=Effect.READ_ONLY)
def find(order: str) -> str:
    """What an order cost."""
    return f"order {order} cost 120"


@brain.tool(effect=Effect.NETWORK, approval=lambda arguments: arguments["amount"] > 100 and "a large refund")
def refund(order: str, amount: float) -> str:
    """Pay money back."""
    return f"{amount:g} paid back for {order}"


def main() -> None:
    with brainq.local(brain, dir=None) as client:
        print("you:     find A1")
        print("brainq: ", client.run("monday", "find A1").text)
        print("you:     refund A1 by 120")
        handle = client.submit("monday", "refund A1 by 120")
        handle.wait("people")
        (approval,) = handle.approvals()
        print(f"brainq:  waits, because {approval.tool} is {approval.reason}; you approve it")
        client.approve(approval.id)
        print("brainq: ", handle.result().text)


if __name__ == "__main__":
    main()
