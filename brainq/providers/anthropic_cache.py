"""Cache breakpoints: where the service is to keep what it has read, so that a turn's next step reads it there. Pure.

The API takes four. What stands at a breakpoint is kept, and found again by a later request that begins with the same;
it looks back over 20 blocks only. So one stands behind the tools, which all sessions share, one behind the system
prompt, one at the end, and one where the request of the step before ended, however many results have come since.
"""

from __future__ import annotations

from typing import Any

from brainq.contracts.model import ModelRequest

_HERE = {"type": "ephemeral"}


def pays(request: ModelRequest) -> bool:
    """Whether something is likely to be read again: keeping it costs a quarter more than reading it once.

    That is so where the model has tools, for further steps come, and in a conversation that goes on.
    """
    if request.options.prompt_cache is not None:
        return request.options.prompt_cache
    goes_on = any(message.role == "assistant" for message in request.messages)
    return request.purpose == "step" and (bool(request.tools) or goes_on)


def with_breakpoints(body: dict[str, Any]) -> dict[str, Any]:
    """The request with its breakpoints."""
    made = dict(body)
    if body.get("tools"):
        made["tools"] = [*body["tools"][:-1], _kept(body["tools"][-1])]
    if body.get("system"):
        made["system"] = [_kept({"type": "text", "text": body["system"]})]
    messages = list(body["messages"])
    for at in _ends(messages):
        content = messages[at]["content"]
        messages[at] = {**messages[at], "content": [*content[:-1], _kept(content[-1])]}
    made["messages"] = messages
    return made


def _ends(messages: list[dict[str, Any]]) -> list[int]:
    """The newest message, and the one before the newest reply: both are a user's, whose blocks can all be kept."""
    said = [at for at, message in enumerate(messages) if message["role"] == "user"]
    return said[-2:]


def _kept(block: dict[str, Any]) -> dict[str, Any]:
    return {**block, "cache_control": _HERE}
