"""What docs/operate/auth.md shows is so."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from brainq.app.access import Verb, may
from brainq.app.access.tokens import KEPT_S

PAGE = (Path(__file__).parents[4] / "docs/operate/auth.md").read_text()


def test_the_pages_caller_may_what_it_says() -> None:
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.S)[0], names)
    caller = names["caller"]
    assert may(caller, Verb.SUBMIT, "acme:eu:7")
    assert not may(caller, Verb.STEER, "acme:eu:7")
    assert not any(may(caller, Verb.READ, session) for session in ("acme2:1", "acme", "ACME:1"))


def test_the_pages_own_check_knows_its_users_and_nobody_else() -> None:
    names: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", PAGE, re.S)[1], names)
    ann = names["authenticate"]({"cookie": "session=good"})
    assert (ann.name, ann.prefixes) == ("acme/ann", ("acme:ann:",))
    assert may(ann, Verb.STEER, "acme:ann:1")
    assert not may(ann, Verb.READ, "acme:anna:1")
    assert not may(ann, Verb.DECIDE, "acme:ann:1")
    assert names["authenticate"]({}) is None


def test_every_verb_is_told_and_the_seconds_are_those_of_the_code() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.M) == list(Verb)
    assert f"within {KEPT_S:g} seconds" in PAGE
