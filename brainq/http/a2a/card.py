"""Agent cards: who an agent is, where it is asked and how one is let in; and, for who is let in, what its tools are."""

from __future__ import annotations

from a2a.types.a2a_pb2 import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from brainq import __version__
from brainq.brain import Brain
from brainq.http.a2a.parts import JSON
from brainq.http.a2a.rpc import VERSION

MODES = ("text/plain", JSON)
TAKEN = (*MODES, "image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf")
TOKEN = "token"


def public_card(brain: Brain, url: str, *, asks_for_tokens: bool) -> AgentCard:
    """For everybody: of the tools it says nothing. `url` is where the gateway is reached."""
    card = AgentCard(
        name=brain.name,
        description=_described(brain),
        version=__version__,
        supported_interfaces=[
            AgentInterface(
                url=f"{url}/a2a/{brain.name}", protocol_binding="JSONRPC", protocol_version=VERSION
            )
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=True),
        default_input_modes=TAKEN,
        default_output_modes=MODES,
        skills=[AgentSkill(id="chat", name=brain.name, description=_described(brain), tags=["chat"])],
    )
    if asks_for_tokens:
        bearer = HTTPAuthSecurityScheme(scheme="bearer", description="`brainq token create` makes one")
        card.security_schemes[TOKEN].CopyFrom(SecurityScheme(http_auth_security_scheme=bearer))
        card.security_requirements.append(SecurityRequirement(schemes={TOKEN: StringList()}))
    return card


def extended_card(brain: Brain, url: str, *, asks_for_tokens: bool) -> AgentCard:
    """For who is let in: each tool is a skill, tagged with what it does to the world."""
    card = public_card(brain, url, asks_for_tokens=asks_for_tokens)
    for name in brain.tools:
        spec = brain.tools[name].spec
        card.skills.append(
            AgentSkill(
                id=name,
                name=name,
                description=spec.description or name,
                tags=[spec.effect.value.lower()],
            )
        )
    return card


def _described(brain: Brain) -> str:
    return brain.description or f"The agent {brain.name}."
