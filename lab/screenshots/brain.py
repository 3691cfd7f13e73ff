"""A garden shop's help desk, whose model is a script: the turns that the pictures show are worth looking at.

A message's first words choose what the model does. DESK_PACE (1.0) stretches or shortens what it takes.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

from brainq import Brain, ChildTurn, Effect, Limits, Pending, RunContext, ScriptedProvider
from brainq.contracts.model import ModelChunk, ModelReply, ModelRequest
from brainq.engine.models.providers import register_provider
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says

PACE = float(os.environ.get("DESK_PACE", "1.0"))
WORD_S = 0.035

ORDERS = {
    "A-1042": {
        "customer": "Ida Brandt",
        "item": "Acer palmatum 'Osakazuki', 60 cm",
        "paid": 84.50,
        "state": "arrived broken",
    },
    "A-1043": {"customer": "Jon Vale", "item": "Hamamelis 'Diane'", "paid": 46.00, "state": "on its way"},
}
POLICY = "Plants that arrive broken are replaced or paid back within 14 days. A person agrees to amounts over 50."
NOTE_BEFORE = "# Ida Brandt\n\n- gardens in clay, shade after noon\n- prefers e-mail\n"
NOTE_AFTER = NOTE_BEFORE + "- 2026-11: maple of order A-1042 arrived broken; 84.50 paid back\n"

ANSWER = """The maple of order **A-1042** arrived broken, so I have paid back **84.50** and noted it for next time.

What I looked at:

- the order itself: *Acer palmatum 'Osakazuki'*, 60 cm, paid with one card
- our policy: broken plants are replaced or paid back within 14 days
- the stock: the next maples of that size come in **three weeks**

If Ida would rather have another tree, `Acer palmatum 'Seiryu'` is here now, in the same size:

1. say so in this session
2. I will reserve one, and send it on Monday

```
reserve("Acer palmatum 'Seiryu'", size_cm=60, until="2026-12-01")
```
"""


def reply(request: ModelRequest) -> ModelReply | ScriptedFailure:
    own = [message for message in request.messages if message.turn == request.turn_id]
    said = next(message.content for message in own if message.role == "user")
    for beginning, script in SCRIPTS.items():
        if said.startswith(beginning):
            return script(request)
    return says(f"You said: {said}. The desk is open until six.")


def _maple(request: ModelRequest) -> ModelReply | ScriptedFailure:
    match request.step:
        case 1:
            return calls(
                ("find_order", {"order": "A-1042"}),
                ("read_policy", {"about": "broken plants"}),
                ("count_stock", {"item": "Acer palmatum", "size_cm": 60}),
                text="I will look at the order, at what we promise, and at the stock.",
            )
        case 2:
            return fails("stream", attempts=1, then=_refund(), after_text="The order is there; I will")
        case 3:
            return calls(
                ("edit_note", {"path": "customers/ida-brandt.md", "old_text": NOTE_BEFORE, "new_text": NOTE_AFTER})
            )
        case _:
            return says(ANSWER)


def _refund() -> ModelReply:
    return calls(
        ("refund", {"order": "A-1042", "amount": 84.5, "reason": "arrived broken"}),
        text="The order is there, and our policy is plain: I will pay 84.50 back, if a person agrees.",
    )


def _witch_hazel(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(("track_parcel", {"order": "A-1043"}), text="I ask the carrier; that may take a while.")
    return says("The witch hazel of order A-1043 left the depot this morning and arrives tomorrow.")


def _every_maple(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(
            *(
                ("count_stock", {"item": name, "size_cm": size})
                for name in ("Acer palmatum", "Acer griseum")
                for size in (40, 60, 80)
            )
        )
    return says("There are 31 maples: most of them 40 cm, none of 60 cm.")


def _lost(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(("find_order", {"order": "A-9999"}), ("print_label", {"order": "A-9999"}))
    return says("There is no order A-9999, and the label printer does not answer. Is it A-1042?")


def _letter(request: ModelRequest) -> ModelReply:
    return says(
        " ".join(
            ["Dear Ida, thank you for your patience with the maple."]
            + ["The next ones are lifted when the ground is damp, and rest here for a week before they travel."] * 14
        )
    )


TABLE = """### Maples for Ida

| Tree | Size | Here | Price |
|:-----|-----:|:----:|------:|
| Acer palmatum 'Osakazuki' | 60 cm | no | 84.50 |
| Acer palmatum 'Seiryu' | 60 cm | **4** | 79.00 |
| Acer griseum | 80 cm | 2 | ~~110.00~~ 96.00 |

- [x] stock counted
- [ ] customer asked

---

Care: see https://example.org/maples.

#### In Hebrew

\u05e2\u05e5 \u05d4\u05d0\u05d3\u05e8 \u05de\u05d2\u05d9\u05e2 \u05de\u05d7\u05e8.
"""


def _table(request: ModelRequest) -> ModelReply:
    return says(TABLE)


def _growers(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(
            ("ask_grower", {"grower": "north"}), ("ask_grower", {"grower": "south"}), text="I ask both growers."
        )
    return says("North has three, South has none until spring.")


def _sweep(request: ModelRequest) -> ModelReply:
    if request.step == 1:
        return calls(*(("count_stock", {"item": f"Plant {number:03d}", "size_cm": 40}) for number in range(32)))
    return says("All beds are counted.")


def _broken(request: ModelRequest) -> ScriptedFailure:
    return fails("server", retryable=False, message="the model's service is away")


SCRIPTS: dict[str, Callable[[ModelRequest], ModelReply | ScriptedFailure]] = {
    "The maple": _maple,
    "Where is the witch hazel": _witch_hazel,
    "How many maples": _every_maple,
    "Print a label": _lost,
    "Write to Ida": _letter,
    "Ask the old model": _broken,
    "Compare the maples": _table,
    "Ask the growers": _growers,
    "Count every bed": _sweep,
}


class Unhurried(ScriptedProvider):
    """Thinks for a moment, then streams word by word."""

    def generate_stream(self, request: ModelRequest) -> Iterator[ModelChunk]:
        time.sleep(0.5 * PACE)
        for chunk in super().generate_stream(request):
            yield chunk
            time.sleep(WORD_S * PACE)


# Behind the name of a model that has a price, so that there are costs to see. Nobody is asked; the key opens nothing.
os.environ.setdefault("OPENAI_API_KEY", "not-used")
register_provider("openai", lambda: Unhurried(rules=reply, name="openai"))

brain = Brain(
    "desk",
    "openai:gpt-4.1-mini",
    "You are the help desk of a garden shop.",
    limits=Limits(timeout_s=600, max_steps=12, max_tool_calls=40),
)


@brain.tool(effect=Effect.READ_ONLY)
def find_order(order: str) -> dict[str, Any]:
    """An order by its number."""
    time.sleep(0.7 * PACE)
    if order not in ORDERS:
        raise LookupError(f"no order {order}")
    return ORDERS[order]


@brain.tool(effect=Effect.READ_ONLY)
def read_policy(about: str) -> str:
    """What the shop promises."""
    time.sleep(0.4 * PACE)
    return POLICY


@brain.tool(effect=Effect.READ_ONLY)
def count_stock(item: str, size_cm: int) -> dict[str, Any]:
    """How many are here."""
    time.sleep((0.3 + (size_cm % 7) / 5) * PACE)
    return {"item": item, "size_cm": size_cm, "here": (size_cm * 7) % 13, "next": "in three weeks"}


def _agrees(arguments: dict[str, Any]) -> str | bool:
    return f"{arguments['amount']:.2f} is more than 50" if arguments["amount"] > 50 else False


@brain.tool(effect=Effect.DESTRUCTIVE, approval=_agrees)
def refund(order: str, amount: float, reason: str) -> str:
    """Pay money back."""
    time.sleep(0.6 * PACE)
    return f"{amount:.2f} of order {order} paid back"


@brain.tool(effect=Effect.LOCAL_WRITE, resources=("note:{path}",))
def edit_note(path: str, old_text: str, new_text: str, ctx: RunContext) -> str:
    """Replace a note's text."""
    time.sleep(0.5 * PACE)
    ctx.record_change(path, old_text, new_text)
    return f"{path} changed"


@brain.tool(effect=Effect.NETWORK)
def track_parcel(order: str, ctx: RunContext) -> Pending:
    """Ask the carrier, who answers later."""
    return Pending(ctx.outside_token(), timeout_s=3600)


@brain.tool(effect=Effect.NETWORK)
def ask_grower(grower: str) -> ChildTurn:
    """Have another turn ask a grower."""
    return ChildTurn(f"What does the grower in the {grower} have?")


@brain.tool(effect=Effect.NETWORK)
def print_label(order: str) -> str:
    """Print a parcel's label."""
    time.sleep(0.4 * PACE)
    raise ConnectionError("the label printer does not answer")
