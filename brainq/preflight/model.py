"""Whether the brain's model can be asked: its name, its key, its package. Nothing is sent to anybody."""

from __future__ import annotations

from brainq.errors import BrainqError
from brainq.preflight.check import Check, fail, ok
from brainq.providers.base import Checked, Provider
from brainq.providers.resolve import described, resolve_model


def check_model(model: str | Provider) -> Check:
    if isinstance(model, Provider):
        provider, said = model, described(model)
    else:
        try:
            provider, name = resolve_model(model)
        except BrainqError as error:
            return fail("model", str(error), "correct the model of your Brain(...)")
        said = f"{provider.name}:{name}"
    if isinstance(provider, Checked):
        try:
            provider.check()
        except BrainqError as error:
            what, _, remedy = str(error).partition("; ")
            return fail("model", f"{said}: {what}", remedy)
    return ok("model", said)
