"""Which model answers: a real one when there is a key for it, else the rules beside this file."""

from __future__ import annotations

from collections.abc import Mapping

from brainq import Provider
from brainq.testing import ScriptedProvider
from examples.vault.rules import reply

OPENAI_DEFAULT = "gpt-4.1-mini"
ANTHROPIC_DEFAULT = "claude-haiku-4-5"
OFFLINE_LATENCY_S = 0.25  # a reply takes a moment, as a model's does, so that its words can be seen coming


def choose_model(environment: Mapping[str, str]) -> str | Provider:
    """`openai:...` or `anthropic:...` by the keys found (BRAINQ_MODEL names another model), else the offline rules."""
    name = environment.get("BRAINQ_MODEL", "")
    if environment.get("OPENAI_API_KEY") or (environment.get("OPENAI_BASE_URL") and name):
        return f"openai:{name.removeprefix('openai:') or OPENAI_DEFAULT}"
    if environment.get("ANTHROPIC_API_KEY"):
        return f"anthropic:{name.removeprefix('anthropic:') or ANTHROPIC_DEFAULT}"
    return ScriptedProvider(rules=reply, latency_s=OFFLINE_LATENCY_S, name="offline-rules")


def described(model: str | Provider) -> str:
    """One line for people."""
    if isinstance(model, str):
        return f"{model} (a real model; it decides for itself, so its calls may differ from run to run)"
    return "offline rules (no key found; set OPENAI_API_KEY or ANTHROPIC_API_KEY for a real model)"
