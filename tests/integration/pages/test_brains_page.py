"""docs/guides/brains.md: its brains load, and each turn is answered as the page says."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from brainq.client.client import Client
from brainq.engine.brain.brains import load_brains
from brainq.engine.models.scripted import ScriptedProvider, calls, says
from tests.support.pump import Pump

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "brains.md"


def test_the_pages_brains_do_what_it_says(
    pumps: Callable[..., Pump], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app, producer = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "desks.py").write_text(app)
    monkeypatch.syspath_prepend(str(tmp_path))
    try:
        brains = load_brains("desks:brains")
    finally:
        sys.modules.pop("desks", None)
    support, billing = brains
    support.model = ScriptedProvider(
        [calls(("find", {"order": "4"}), ("ask_billing", {"question": "Is it paid?"})), says("It is.")]
    )
    billing.model = ScriptedProvider([calls(("find", {"invoice": "7"})), says("Yes.")])
    pump = pumps(brains, app="desks:brains")

    assert "client.brains" in producer
    assert isinstance(pump.client, Client)
    assert str(pump.client.brains) in producer
    paid = pump.submit("acme:42", "Is invoice 7 paid?", brain="billing")
    asked = pump.submit("acme:43", "Where is my order, and is it paid?")
    pump.finish(paid)
    pump.finish(asked)
    assert [message.content for message in paid.transcript() if message.role == "tool"] == [
        "invoice 7: paid, says billing"
    ]
    assert [message.content for message in asked.transcript() if message.role == "tool"] == [
        "order 4: on its way",
        "Yes.",
    ]
