"""A brain to chat with.

Its model writes what the message requests, in pieces; its tools need approvals, fail and take long.
"""

from __future__ import annotations

from brainq import Approvals, Brain, Effect, ScriptedProvider
from brainq.contracts.message import Reasoning
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says

FAMILY = "👩‍👩‍👧‍👦"
THOUGHT = "Hm, I should 🤔 look."
STORY = f"Once 😀 there was {FAMILY} and so on."


def answer(request: ModelRequest) -> ModelReply | ScriptedFailure:
    said = next(message.content for message in reversed(request.messages) if message.role == "user")
    if request.step == 1:
        match said.split():
            case ["story"]:
                return says(STORY)
            case ["again"]:
                wrong = "This is the wrong text, which is taken back."
                return fails("stream", attempts=1, after_text=wrong, then=says(STORY))
            case ["broken"]:
                return fails("refused", retryable=False, message="the model refuses")
            case ["locate"]:  # a tool that the client brings along
                return calls(("locate", {"exact": True}), text="Where? ")
            case ["think"]:
                thought = Reasoning(wire="scripted", text=THOUGHT)
                return calls(("look", {"name": "a"}), text="Let me see. ").model_copy(update={"reasoning": (thought,)})
            case ["two"]:
                return calls(("save", {"name": "a"}), ("save", {"name": "b"}), text="Two of them. ")
            case [("look" | "save" | "fail") as tool, *names]:
                return calls(*((tool, {"name": name}) for name in names), text="Let me see. ")
            case _:
                pass
    return says(f"Read: {request.messages[-1].content}")


brain = Brain(
    "chatty",
    ScriptedProvider(rules=answer, latency_s=0.15),
    "Chat.",
    approvals=Approvals(effects=(Effect.LOCAL_WRITE,)),
)


@brain.tool(effect=Effect.READ_ONLY)
def look(name: str) -> dict[str, str]:
    """Look."""
    return {"saw": f"{name} 😀"}


@brain.tool(effect=Effect.LOCAL_WRITE)
def save(name: str) -> str:
    """Save."""
    return f"saved {name}"


@brain.tool(effect=Effect.NETWORK)
def fail(name: str) -> str:
    """Fail."""
    raise ValueError(f"no {name}")
