"""Several brains at the command line: listed, named by a submit, and refused where there is none of the name."""

from __future__ import annotations

import json

from brainq.errors import ExitCode
from tests.support.brains.capped import APP as CAPPED
from tests.support.brains.pair import APP
from tests.support.commands import Brainq


def test_brains_are_listed_with_their_tools_and_the_first_is_the_default(brainq: Brainq) -> None:
    told = json.loads(brainq("-A", APP, "brains", "--json").out)
    assert [(brain["name"], brain["is_default"]) for brain in told] == [("desk", True), ("lab", False)]
    assert "where" in {tool["name"] for tool in told[0]["tools"]}
    page = brainq("-A", APP, "brains").out
    assert next(line.split()[:2] for line in page.splitlines()[1:]) == ["desk", "yes"]
    assert "lab" in page


def test_a_brains_cap_is_listed(brainq: Brainq) -> None:
    told = json.loads(brainq("-A", CAPPED, "brains", "--json").out)
    assert [brain["max_live_turns"] for brain in told] == [None, 2]
    page = brainq("-A", CAPPED, "brains").out
    assert "live at most" in page
    assert next(line.split()[-1] for line in page.splitlines() if line.startswith("lab")) == "2"


def test_a_submit_names_its_brain_and_show_says_which(brainq: Brainq) -> None:
    sent = brainq("-A", APP, "submit", "s1", "hello", "--brain", "lab", "--no-wait")
    assert sent.code == 0, sent.err
    assert ["brain", "lab"] in [line.split() for line in brainq("-A", APP, "show", sent.out.strip()).out.splitlines()]
    assert [turn["brain"] for turn in json.loads(brainq("-A", APP, "list", "--json").out)] == ["lab"]


def test_a_brain_that_there_is_not_is_refused_with_those_there_are(brainq: Brainq) -> None:
    refused = brainq("-A", APP, "submit", "s1", "hello", "--brain", "garden", "--no-wait")
    assert refused.code == ExitCode.USAGE
    assert "'garden'" in refused.err
    assert "desk, lab" in refused.err
    assert brainq("-A", APP, "list", "--json").out.strip() == "[]"
