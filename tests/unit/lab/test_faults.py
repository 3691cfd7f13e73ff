"""The table of faults without its processes: the page has it, what did not fire is red, the judge counts right."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from brainq import TraceStatus
from lab.faults import __main__ as command
from lab.faults import hosts as hosts_of_machine
from lab.faults.disks import no_small_disk, small_disk
from lab.faults.effects import NotSeen, effect_server
from lab.faults.fault import Fault, Pace
from lab.faults.limits import Descriptors, Threads, no_descriptors, no_threads
from lab.faults.load import Submitted
from lab.faults.page import BEGINS, ENDS, PAGE, rows_of, write_page
from lab.faults.rounds import STAGES, Plan, run_fault, run_faults
from lab.faults.shop import WRITES
from lab.faults.stage import HOSTS
from lab.faults.table import FAULTS, by_name, hosts
from lab.faults.table.doors import is_true
from lab.faults.table.hosts import HostVanishes
from lab.faults.table.kills import Kill
from lab.faults.verdict import TurnWord, Verdict, judge

QUIET = Console(quiet=True)
PLAN = Plan(times=1, rate=1.0, pace=Pace(outage_s=0.0, frozen_s=0.0), seed=0, calm_s=0.0)
ONCE = {f"t1 {what}": 1 for what in WRITES}
DONE: dict[str, tuple[str, ...]] = dict.fromkeys(WRITES, ("success",))
COMPLETED = SimpleNamespace(ending="completed")
REAL = [fault for fault in FAULTS if fault.name != "none"]


def gives(value: Any) -> Callable[..., Any]:
    """A function that returns this, whatever it is given."""

    def function(*_: Any) -> Any:
        return value

    return function


class CalmStage:
    """A stage on which all is well, and nothing happens."""

    def __init__(self) -> None:
        self.ends = 0
        written = {"writes": gives(Counter(ONCE)), "lines": gives([]), "seen": gives(None), "ended": self._ended}
        self.effects = SimpleNamespace(release=gives(None), **written)
        self.producer = SimpleNamespace(
            begin=gives(None), end=gives(None), take=gives(Submitted({"t1": 1.0})), rate=1.0
        )
        self.producer.submitted = Submitted()
        counters = ("resets", "refused", "silenced", "delayed", "swallowed")
        self.proxy = SimpleNamespace(**dict.fromkeys(counters, 7))
        self.redis = SimpleNamespace(command=gives(["run_id:abc "]))
        disks = {name: SimpleNamespace(refused=7) for name in ("sql", "redis", "workers")}
        self.servers = SimpleNamespace(
            sentinels=SimpleNamespace(primary_port=1, until_followed=gives(None)), sql_file=Path("none"), disks=disks
        )
        self.cluster = SimpleNamespace(primary_port=gives(1), mend=gives(None))
        self.fleet = SimpleNamespace(workers=[])
        hosts = {name: SimpleNamespace(dropped=7, mend=gives(None)) for name in HOSTS}
        self.network = SimpleNamespace(hosts=hosts)
        self.directory = Path("none")
        self.client = SimpleNamespace(handle=gives(SimpleNamespace(session_id="s", result=gives(COMPLETED))))
        trace = [SimpleNamespace(tool=what, status=TraceStatus.COMPLETED) for what in WRITES]
        state, settings = SimpleNamespace(calls=SimpleNamespace(trace=gives(trace))), SimpleNamespace(max_reply_bytes=1)
        rows = SimpleNamespace(rows=gives([SimpleNamespace(turn_id="t1")]))
        self.wiring = SimpleNamespace(state=state, settings=settings, store=SimpleNamespace(turns=rows))
        self.mcp_shop = SimpleNamespace(orders=gives([]), answers=gives([]))

    def replace_dead(self) -> list[str]:
        return []

    def _ended(self) -> dict[str, float]:
        self.ends += 1
        return {f"t{number}": 0.0 for number in range(self.ends)}


def run_stubbed(fault: type[Fault], **methods: Any) -> Verdict:
    """Its verdict where it does nothing."""

    stubs = {"inject": gives(None), "heal": gives(None), "recovery_s": gives([]), **methods}
    if issubclass(fault, Kill):
        stubs |= {"prepare": gives(None), "holds": False}
    verdict = Verdict(fault.name)
    stubbed = cast("type[Fault]", type(f"Stubbed{fault.__name__}", (fault,), stubs))
    run_fault(stubbed, cast("Any", CalmStage()), PLAN, verdict, times=1, console=QUIET)
    return verdict


@pytest.mark.parametrize("fault", REAL, ids=lambda fault: fault.name)
def test_a_fault_that_does_nothing_is_seen_not_to_fire_and_is_red(fault: type[Fault]) -> None:
    verdict = run_stubbed(fault)
    assert (verdict.fired, verdict.failure, verdict.lost, verdict.doubled) == ([0], "", [], [])
    assert not verdict.is_right


def test_the_same_run_is_right_when_the_fault_fires() -> None:
    assert run_stubbed(REAL[0], fired=gives(1)).is_right


def test_what_breaks_in_an_injection_is_red_and_said() -> None:
    def breaks(*_: Any) -> None:
        raise LookupError("process 7 is not a serial worker")

    verdict = run_stubbed(REAL[0], inject=breaks)
    assert not verdict.is_right
    assert verdict.failure == "LookupError: process 7 is not a serial worker"


def test_a_host_that_was_cut_off_and_of_which_no_fence_refused_anything_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals = [{"place": "refused", "pid": 3, "at": 9.0}, {"place": "refused", "pid": 4, "at": 9.0}]
    monkeypatch.setattr(hosts, "REFUSED_S", 0.0)
    stage = cast("Any", CalmStage())
    fault = HostVanishes(PLAN.pace)
    fault.pid, fault.back, fault.host = 4, 8.0, cast("Any", SimpleNamespace(unplugged=1))
    with pytest.raises(NotSeen, match="a fence refuses the host that is back"):
        fault.fired(stage)
    stage.effects.lines = gives(refusals)
    assert fault.fired(stage) == 1
    fault.before = 1
    assert fault.fired(stage) == 0, "its link has not lost its carrier"


def test_what_cannot_be_injected_here_is_no_failure_and_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    hosts_of_machine.no_hosts.cache_clear()
    try:
        ran = list(run_faults([HostVanishes], PLAN, QUIET))
    finally:
        hosts_of_machine.no_hosts.cache_clear()
    assert [(verdict.is_right, verdict.times, verdict.turns) for verdict in ran] == [(True, 0, 0)]
    assert "only root may make" in ran[0].why_not


def test_each_fault_has_a_name_a_title_a_kind_of_stage_and_a_row_on_the_page() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) == len({fault.title for fault in FAULTS})
    assert {fault.kind for fault in FAULTS} == set(STAGES)
    assert list(rows_of(PAGE.read_text())) == names, "run: make faults"


def test_the_page_has_nothing_lost_or_doubled_and_says_what_was_not_run() -> None:
    for name, line in rows_of(PAGE.read_text()).items():
        fired, turns, outcome = [cell.strip() for cell in line.strip("|").split("|")][2:5]
        if fired.startswith("not run here"):
            continue
        seen, _, of = fired.partition("/")
        assert seen == of, name
        assert (int(turns) > 0, outcome.split("/")[:2]) == (True, ["0", "0"]), name


@pytest.mark.parametrize(
    ("word", "written", "found"),
    [
        (TurnWord("t1", "completed", DONE), ONCE, (0, 0, 0)),
        (TurnWord("t1", None, DONE), ONCE, (1, 0, 0)),
        (TurnWord("t1", "completed", DONE), {**ONCE, "t1 ship": 2}, (0, 1, 0)),
        (TurnWord("t1", "completed", DONE), {"t1 order": 1}, (1, 0, 0)),
        (TurnWord("t1", "failed", DONE), {"t1 order": 1}, (1, 0, 0)),
        (TurnWord("t1", "completed", {"order": ("success",)}), {"t1 order": 1}, (1, 0, 0)),
        (TurnWord("t1", "completed", {**DONE, "ship": ("unknown",)}), {"t1 order": 1}, (0, 0, 1)),
        (TurnWord("t1", "completed", {**DONE, "ship": ("void", "success")}), ONCE, (0, 0, 0)),
    ],
    ids=[
        "right",
        "no ending",
        "ran twice",
        "said to be done and never ran",
        "said so, though the turn failed",
        "completed without it",
        "unknown, and never ran",
        "void, then done",
    ],
)
def test_the_judge_holds_what_brainq_says_against_the_server(
    word: TurnWord, written: dict[str, int], found: tuple[int, int, int]
) -> None:
    verdict = Verdict("x")
    judge(verdict, [word], written)
    assert (len(verdict.lost), len(verdict.doubled), verdict.unknown) == found


def test_a_write_that_did_not_run_as_the_model_reads_is_not_lost() -> None:
    verdict = Verdict("x")
    judge(verdict, [TurnWord("t1", "completed", {**DONE, "ship": ("failed",)})], {"t1 order": 1})
    assert (verdict.lost, verdict.otherwise) == ([], Counter({"write failed": 1}))


@pytest.mark.parametrize(
    ("ended", "made", "answers", "true"),
    [
        (["completed"], 1, [0, 200], True),
        (["completed"], 0, [0, 200], False),
        (["failed", "completed"], 1, [0, 200], True),
        (["failed"], 0, [], False),
        (["unknown"], 1, [0, 200], True),
        (["unknown"], 0, [0], True),
        (["unknown"], 0, [0, 404], False),
        (["unknown"], 0, [0, 404, 0], True),
        (["unknown"], 2, [0, 0], False),
        (["unknown", "completed"], 1, [0, 0, 200], False),
    ],
)
def test_a_word_for_an_order_is_held_against_its_server(
    ended: list[str], made: int, answers: list[int], true: bool
) -> None:
    assert is_true([TraceStatus(status) for status in ended], made, answers) is true


def test_a_small_disk_is_full_until_it_is_freed(tmp_path: Path) -> None:
    if why := no_small_disk():
        pytest.skip(why)
    with small_disk(tmp_path / "disk", megabytes=1) as disk:
        disk.fill()
        with pytest.raises(OSError, match="No space left"):
            (disk.directory / "ready").write_text("1")
        assert disk.refused == 2
        disk.free()
        (disk.directory / "ready").write_text("1")
    assert not (tmp_path / "disk").exists()


@pytest.mark.parametrize(
    ("limit_of", "why_not", "asks", "refusal"),
    [
        (Descriptors, no_descriptors, "open('/dev/null')", "Too many open files"),
        (Threads, no_threads, "__import__('threading').Thread(target=bool).start()", "can't start new thread"),
    ],
    ids=["files", "threads"],
)
def test_a_running_process_is_refused_what_it_lacks_until_that_is_back(
    limit_of: type[Descriptors] | type[Threads], why_not: Callable[[], str], asks: str, refusal: str
) -> None:
    if why := why_not():
        pytest.skip(why)
    asking = f"import sys\nfor line in sys.stdin:\n try:\n  {asks}; print('had', flush=True)\n"
    asking += " except Exception as why:\n  print(why, flush=True)\n"
    command = [sys.executable, "-c", asking]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:

        def ask() -> str:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write("?\n")
            process.stdin.flush()
            return process.stdout.readline()

        try:
            assert ask() == "had\n"
            limit = limit_of(process.pid)
            limit.shorten()
            assert refusal in ask()
            limit.give_back()
            assert ask() == "had\n"
        finally:
            process.kill()


def test_a_turn_that_failed_before_it_wrote_is_another_ending_and_not_lost() -> None:
    verdict = Verdict("x")
    judge(verdict, [TurnWord("t1", "failed", {})], {})
    assert (verdict.lost, verdict.otherwise) == ([], Counter(failed=1))


@pytest.mark.parametrize(
    ("changed", "code"),
    [({}, 0), ({"fired": [0]}, 1), ({"lost": ["t"]}, 1), ({"doubled": ["t"]}, 1), ({"failure": "x"}, 1)],
)
def test_the_exit_code_says_whether_all_is_right(
    changed: dict[str, Any], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    verdict = replace(Verdict("flood", times=1, fired=[1], turns=3), **changed)

    def run(chosen: Sequence[type[Fault]], *_: Any) -> list[Verdict]:
        assert [fault.name for fault in chosen] == ["flood"]
        return [verdict]

    monkeypatch.setattr(command, "run_faults", run)
    monkeypatch.setattr(command, "forget_settings", lambda: None)
    assert command.main(["flood", "--page", ""]) == code


def test_a_name_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no such fault: kill-everything"):
        by_name(["flood", "kill-everything"])
    assert by_name(["flood", "none"]) == (FAULTS[0], *(fault for fault in FAULTS if fault.name == "flood"))


def test_rows_that_were_not_run_again_stay(tmp_path: Path) -> None:
    page = tmp_path / "faults.md"
    page.write_text(f"# Faults\n\n{BEGINS}\n{ENDS}\nafter\n")
    first = Verdict("flood", times=1, fired=[1], turns=3, recovery_s=[0.5, 2.0])
    write_page(page, [first, Verdict("poison", times=1, fired=[2], turns=4)], "`aaaaaaa`, today", "Notes.")
    write_page(page, [Verdict("poison", why_not="no reads")], "`bbbbbbb`, tomorrow", "Notes.")
    rows = rows_of(page.read_text())
    assert list(rows) == ["poison", "flood"], "in the table's order"
    assert "| 1/1 | 3 | 0/0/0 | 0 | 0.5/2.0 | `aaaaaaa`, today |" in rows["flood"]
    assert "not run here: no reads" in rows["poison"]
    assert {line.count("|") for line in rows.values()} == {9}
    assert page.read_text().endswith(f"{ENDS}\nafter\n")


def test_the_effect_server_counts_writes_and_holds_the_first_who_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from threading import Thread

    from lab.faults import shop

    with effect_server(tmp_path) as effects:
        monkeypatch.setenv(shop.EFFECTS, effects.url)
        effects.hold("order", "t1")
        first = Thread(target=shop.tell, args=("write", "order", "t1"), kwargs={"key": "t1 order"})
        first.start()
        effects.wait_seen("order", "t1")
        shop.tell("write", "order", "t1", key="t1 order")  # the second is not held
        assert effects.writes() == {"t1 order": 2}
        assert first.is_alive(), "the write is in the log, and its answer is held"
        effects.release()
        first.join(30)
        assert not first.is_alive()
        shop.tell("visit", "ended", "t1")
        assert list(effects.ended()) == ["t1"]
        assert len((tmp_path / "effects.log").read_text().splitlines()) == 3
