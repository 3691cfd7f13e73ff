"""Which results a turn has read that nobody vouches for, where its brain wants to know."""

from __future__ import annotations

from collections.abc import Iterable

from brainq.brain import Brain
from brainq.contracts.message import Message
from brainq.contracts.view import TurnView
from brainq.turn.context.transcript import note_kind

SUMMARY = "a summary"


def untrusted_sources(brain: Brain, view: TurnView) -> tuple[str, ...]:
    """The untrusted tools whose results the model has read, each once; empty where the brain has no such policy.

    What a compaction has dropped cannot be looked at any more: its summary counts as untrusted.
    """
    if brain.after_untrusted is None:
        return ()
    is_session = brain.after_untrusted == "ask_in_session"
    messages = view.history.messages if is_session else view.own
    names = [*view.opening, *(message.name for message in messages if message.role == "tool")]
    found = [name for name in names if (tool := brain.tools.get(name)) is not None and tool.untrusted]
    if view.compacted or (is_session and _has_summary(messages)):
        found.append(SUMMARY)
    return tuple(dict.fromkeys(found))


def _has_summary(messages: Iterable[Message]) -> bool:
    return any(note_kind(message) == "summary" for message in messages)
