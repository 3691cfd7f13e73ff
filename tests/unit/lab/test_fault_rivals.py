"""The rivals' table without its processes: what is counted, and that each rival has both ways and a row on the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.compare.systems import SYSTEMS
from lab.faults.page import PAGE
from lab.faults.rivals import __main__ as command
from lab.faults.rivals.running import Outcome, count
from lab.faults.rivals.systems import RIVALS, Rival, chosen

ROOT = Path(__file__).parents[3]


def test_each_compared_system_is_there_with_both_ways_and_a_file() -> None:
    assert [rival.name for rival in RIVALS] == [system.name for system in SYSTEMS if system.name != "brainq-events"]
    for rival in RIVALS:
        assert [setting.is_once for setting in rival.settings] == [False, True]
        assert "worker" in rival.roles
        assert (ROOT / rival.module.replace(".", "/")).with_suffix(".py").is_file()


@pytest.mark.parametrize("rival", RIVALS, ids=lambda rival: rival.name)
def test_the_page_has_its_rows(rival: Rival) -> None:
    table = PAGE.read_text().partition(command.BEGINS)[2].partition(command.ENDS)[0]
    rows = [line for line in table.splitlines() if line.startswith(f"| {rival.system.label}")]
    assert [setting.label in row for setting, row in zip(rival.settings, rows, strict=True)] == [True, True]


def test_the_page_has_nothing_doubled_or_silent_in_brainqs_default() -> None:
    (row,) = [line for line in PAGE.read_text().splitlines() if line.startswith("| brainq (") and "| default |" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert (cells[4], cells[6], cells[7]) == ("0", "0", "0")
    assert int(cells[2]) == int(cells[3]) + int(cells[5]) > 0


@pytest.mark.parametrize(
    ("ran", "ended", "found"),
    [
        (1, {"ending": "completed", "said": "written"}, Outcome(writes=1, once=1, endings={"completed": 1})),
        (2, {"ending": "completed", "said": "written"}, Outcome(writes=1, twice=1, silent=1, endings={"completed": 1})),
        (2, {"ending": "failed", "said": "timeout"}, Outcome(writes=1, twice=1, endings={"failed": 1})),
        (0, {"ending": "completed", "said": "written"}, Outcome(writes=1, never=1, silent=1, endings={"completed": 1})),
        (0, {"ending": "completed", "said": "unknown"}, Outcome(writes=1, never=1, endings={"unknown": 1})),
        (1, None, Outcome(writes=1, once=1, stuck=1)),
    ],
    ids=["right", "twice", "twice, and failed", "lost in silence", "unknown", "stuck"],
)
def test_what_is_counted(ran: int, ended: dict[str, str] | None, found: Outcome) -> None:
    outcome = Outcome()
    count(outcome, ran, ended)
    assert outcome == found


def test_brainqs_default_is_held_to_its_promise() -> None:
    assert command.right(Outcome(writes=2, once=1, never=1, endings={"unknown": 2}))
    for broken in (Outcome(), Outcome(writes=1, twice=1), Outcome(writes=1, silent=1), Outcome(writes=1, stuck=1)):
        assert not command.right(broken)


def test_a_system_that_there_is_not_is_refused() -> None:
    assert [rival.name for rival in chosen("temporal, dbos")] == ["dbos", "temporal"]
    with pytest.raises(ValueError, match="no such system: airflow"):
        chosen("airflow")
