"""A stop of a name that nothing has says so: a misspelt one stops nothing, and reads as if it did."""

from __future__ import annotations

import pytest

from brainq import Brain, Effect
from brainq.cli.commands.stops import unmet_note
from brainq.contracts.stop import checked_stop
from brainq.engine.brain.brains import Brains, read_brains
from brainq.errors import BrainNotLoaded

desk = Brain("desk", "offline:rules")


@desk.tool(effect=Effect.NETWORK)
def send_email() -> None:
    """Send it."""


@pytest.mark.parametrize(
    ("kind", "name", "note"),
    [
        ("tool", "send_email", ""),
        ("tool", "send_emial", "have no tool send_emial; did you mean send_email? The stop remains active"),
        ("brain", "desk", ""),
        ("brain", "shop", "have no brain shop. The stop remains active"),
        ("server", "github", "have no server github. The stop remains active"),
        ("model", "gpt-5", ""),
        ("tenant", "acme", ""),
    ],
)
def test_a_name_that_no_brain_has_is_told(monkeypatch: pytest.MonkeyPatch, kind: str, name: str, note: str) -> None:
    def present(_: str) -> Brains:
        return read_brains(desk)

    monkeypatch.setattr("brainq.engine.brain.brains.load_brains", present)
    said = unmet_note(checked_stop(kind, name))
    assert note in said
    assert bool(said) is bool(note)


def test_where_no_brain_is_here_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(reference: str) -> Brains:
        raise BrainNotLoaded(reference)

    monkeypatch.setattr("brainq.engine.brain.brains.load_brains", absent)
    assert unmet_note(checked_stop("tool", "send_emial")) == ""
