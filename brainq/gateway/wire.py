"""Wires: other projects' protocols, which packages of brainq/contrib add to the gateway through entry points."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastapi import APIRouter

from brainq.app.access import Verb
from brainq.gateway.edge.request import Gateway
from brainq.runtime.settings.extensions import load_extensions

GROUP = "brainq.wires"


@dataclass
class Wire:
    """A wire of one gateway. Its routes find it in `app.state.wires`, by its name.

    verbs   the verb that each of its routes needs; a route without one is public
    """

    name: str
    router: APIRouter
    verbs: Mapping[str, Verb]

    async def close(self) -> None:
        """Release what the wire holds. Called when the gateway stops."""


def open_wires(gateway: Gateway) -> list[Wire]:
    """Open the wires that the settings turn on. Raises SetupError if one of them cannot be opened.

    The entry point of a wire is a function that takes the gateway. It returns None if the wire is off, and imports
    the wire's modules only if it is on.
    """
    openers: dict[str, Callable[[Gateway], Wire | None]] = load_extensions(GROUP)
    opened = [openers[name](gateway) for name in sorted(openers)]
    return [wire for wire in opened if wire is not None]
