"""What a model thought before it answered."""

from __future__ import annotations

from pydantic import JsonValue

from brainq.contracts.base import Wire


class Reasoning(Wire):
    """One piece of a reply's reasoning, kept with its message and sent back to the service it came from.

    wire     whose API takes `block` back: `anthropic`, `openai-responses`, ...; other wires leave it out
    text     what may be read of it; empty where the service keeps it to itself
    block    the rest of it as it came: signature, encrypted content, or where it stood; it is sent back unchanged
    before   how many of the reply's calls stand before it
    model    who thought it, as it was asked for: after a change of model a service may refuse it
    """

    wire: str
    text: str = ""
    block: dict[str, JsonValue] = {}
    before: int = 0
    model: str = ""
