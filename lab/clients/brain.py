"""The brain that the clients talk to. The user's message names what the brain does."""

from __future__ import annotations

import time

from brainq import Brain, Effect, RunContext, ScriptedProvider
from brainq.contracts.model import ModelReply, ModelRequest
from brainq.engine.models.scripted import ScriptedFailure, calls, fails, says

STORY = "Once there was a fox 🦊 in the snow. " * 6
PERSON = {"name": "Bob", "age": 7}
OWN = ("linger", "refund")


def answer(request: ModelRequest) -> ModelReply | ScriptedFailure:
    users = [message for message in request.messages if message.role == "user"]
    said, files = users[-1].content, users[-1].attachments
    results = [message.content for message in request.messages[_at(request) :] if message.role == "tool"]
    if results:
        return says(f"Seen {', '.join(results)}.")
    if files:
        return says(f"A picture: {files[0].media_type} of {files[0].size} bytes.")
    match said.strip():
        case "story":
            return says(STORY)
        case "fail":
            return fails("refused", retryable=False, message="the model refuses")
        case "weather":
            return calls(("weather", {"place": "Oslo"}))
        case "person":
            return _person(request)
        case "everything":
            return says(" | ".join(f"{m.role}: {m.content}" for m in request.messages if m.role != "system"))
        case ("linger" | "refund") as tool:
            return calls((tool, {}))
        case _:
            return says(f"You said {said.strip()}.")


def _at(request: ModelRequest) -> int:
    """Return where the turn's own messages begin, which is at the user's last message."""
    return max(at for at, message in enumerate(request.messages) if message.role == "user")


def _person(request: ModelRequest) -> ModelReply:
    """Answer with a person, by the tool that the client brought for it or as JSON."""
    theirs = [tool.name for tool in request.tools if tool.name not in OWN]
    if theirs:
        return calls((theirs[0], PERSON))
    return says('{"name": "Bob", "age": 7}')


brain = Brain("shop", ScriptedProvider(rules=answer, latency_s=0.4), "Talk.")


@brain.tool(effect=Effect.READ_ONLY)
def linger(context: RunContext) -> str:
    """Take long."""
    while not context.token.is_expired:
        time.sleep(0.02)
    return "over"


@brain.tool(effect=Effect.LOCAL_WRITE, approval=True)
def refund() -> str:
    """Pay back."""
    return "paid back"
