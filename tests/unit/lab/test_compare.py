"""The comparison without its runs: which systems, what a table and a chart say, how a run is told apart and counted."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from lab.bench import brain as reference
from lab.compare import measuring, serving, turn
from lab.compare.chart import chart
from lab.compare.install import HERE
from lab.compare.measuring import MARK, cpu_with_ended_children_s, marked
from lab.compare.results import Measured, markdown, shown, table
from lab.compare.rows import Rows, connect
from lab.compare.serving import Ended
from lab.compare.systems import NAMES, SYSTEMS, chosen


def measured(name: str, turns_per_s: Sequence[float], failure: str = "") -> Measured:
    (system,) = chosen(name)
    figures = {
        "turns_per_s": list(turns_per_s),
        "cpu_ms_per_turn": [10.0 for _ in turns_per_s],
        "p99_ms": [2400.0 for _ in turns_per_s],
    }
    return Measured(system, "1.2.3", figures, failure)


def test_systems_are_chosen_by_name_in_the_tables_order() -> None:
    assert [system.name for system in chosen("brainq, restate")] == ["restate", "brainq"]
    assert chosen(None) == SYSTEMS
    with pytest.raises(ValueError, match="no such system: conductor; there are langgraph"):
        chosen("conductor,brainq")


def test_every_system_has_its_file_and_its_pinned_packages() -> None:
    for system in SYSTEMS:
        assert (HERE / "rivals" / f"run_{system.module}.py").exists(), system.name
        if system.set_up:
            lock = (HERE / "requirements" / f"{system.set_up}.lock").read_text()
            assert all(f"{package}==" in lock for package in system.packages), system.name
    assert len(set(NAMES)) == len(NAMES)


def test_nothing_says_where_packages_come_from() -> None:
    for path in [*(HERE / "requirements").iterdir(), *(HERE / "restate").glob("*.json")]:
        assert "://" not in path.read_text(), path.name


def test_the_turn_is_that_of_the_benchmark() -> None:
    assert turn.ANSWER == reference.ANSWER
    assert turn.FINAL_STEPS == reference.FINALIZER_STEPS
    assert [turn.note(path) for path in turn.READS] == [reference.read_note(path) for path in turn.READS]
    assert turn.wrote(*turn.WRITE) == reference.write_note(*turn.WRITE)
    service = (HERE / "restate" / "service.mjs").read_text()
    for said in (turn.ANSWER, *turn.READS, *turn.WRITE):
        assert json.dumps(said) in service
    assert json.dumps(turn.FINAL_STEPS) in service


def test_figures_are_medians_with_their_least_and_most() -> None:
    assert shown([], 1) == ""
    assert shown([3.14159], 1) == "3.1"
    assert shown([30.0, 10.0, 20.0], 0) == "20 (10 to 30)"


def test_a_rival_that_failed_is_said_to_have_failed() -> None:
    results = [measured("restate", [160.0]), measured("temporal", [], "it ended; its log ends: no | port")]
    said = io.StringIO()
    Console(file=said, width=200).print(table(results))
    assert "failed" in next(line for line in said.getvalue().splitlines() if "Temporal" in line)
    assert "failed" not in next(line for line in said.getvalue().splitlines() if "Restate" in line)
    rows = markdown(results).splitlines()
    assert "**Failed:** it ended" in rows[-1]
    assert all(row.replace("\\|", "").count("|") == 6 for row in rows), "a cell of the table breaks it"
    assert ">failed</text>" in chart(results)


def test_a_rival_that_failed_in_a_later_round_keeps_its_figures_and_says_so() -> None:
    row = markdown([measured("restate", [160.0], "it ended")]).splitlines()[-1]
    assert "| 160 |" in row
    assert "**Failed:**" in row


def test_the_chart_is_svg_with_every_label_and_number_as_text() -> None:
    results = [measured("restate", [160.0]), measured("brainq", [80.0])]
    root = ElementTree.fromstring(chart(results))
    svg = "{http://www.w3.org/2000/svg}"
    words = [text.text for text in root.iter(f"{svg}text")]
    assert {"Restate", "brainq", "160", "80.0", "2400"} <= set(words)
    assert sum(word in ("Restate", "brainq") for word in words) == 2
    bars = list(root.iter(f"{svg}rect"))
    widths = [int(bar.attrib["width"]) for bar in bars[:2]]
    assert widths[0] == 2 * widths[1]
    assert "prefers-color-scheme:dark" in chart(results)
    _, _, width, _ = map(float, root.attrib["viewBox"].split())
    assert all(float(bar.attrib["x"]) + float(bar.attrib["width"]) < width for bar in bars)


def test_rows_are_written_once_also_by_a_step_that_runs_twice(tmp_path: Path) -> None:
    rows = Rows(tmp_path / "rows.db")
    for _ in range(2):
        rows.log("t1", turn.ANSWER)
        rows.decision("t1", 4)
    with connect(tmp_path / "rows.db") as connection:
        assert connection.execute("SELECT * FROM logs").fetchall() == [("t1", turn.ANSWER)]
        assert connection.execute("SELECT * FROM decisions").fetchall() == [("t1", 4)]
    connection.close()
    rows.close()


def test_a_system_answers_done_before_its_turns_are_read(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("2\n"))
    lines_before: list[str] = []

    def run(count: int) -> list[Ended]:
        lines_before.extend(capsys.readouterr().out.splitlines())
        return [Ended(2.3, turn.ANSWER, 4, 8)] * count

    serving.serve(run)
    assert lines_before == ["ready"]
    done, turns = capsys.readouterr().out.splitlines()
    assert done == "done"
    assert json.loads(turns) == [{"latency_s": 2.3, "text": turn.ANSWER, "calls": 4, "final_steps": 8}] * 2


CHILD_AT_WORK = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"
WITH_CHILDREN = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {CHILD_AT_WORK!r}])
unmarked = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], env={{}}, stdin=subprocess.PIPE)
print(unmarked.pid, flush=True)
sys.stdin.read()
unmarked.communicate()
"""


@pytest.mark.needs(Path("/proc/self/environ").exists(), "/proc")
def test_a_run_is_charged_with_its_childrens_time_also_when_they_have_ended() -> None:
    mark = "test-of-marks"
    process = subprocess.Popen(
        [sys.executable, "-c", WITH_CHILDREN],
        env={**os.environ, MARK: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        child = int(process.stdout.readline())
        assert marked(mark) == {process.pid, child}
        assert cpu_with_ended_children_s(process.pid) >= 0.2
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()
    assert marked(mark) == set()
    assert cpu_with_ended_children_s(process.pid) == 0.0


def test_what_is_no_reference_turn_is_no_figure() -> None:
    good = {"latency_s": 1.0, "text": turn.ANSWER, "calls": 4, "final_steps": 8}
    assert measuring.latencies_s([good], 1) == [1.0]
    with pytest.raises(measuring.RunFailure, match="not a reference turn"):
        measuring.latencies_s([{**good, "calls": 3}], 1)
    with pytest.raises(measuring.RunFailure, match="1 turns ended, not 2"):
        measuring.latencies_s([good], 2)
